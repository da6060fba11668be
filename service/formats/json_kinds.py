"""Which kind of JSON a file is, as far as its beginning shows: a document or a sequence, GeoJSON or another format."""

import json
import os
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from service.formats.format import Format, Reader, reading_of
from service.formats.opened import opened
from service.formats.table import FORMATS

HEAD_BYTES = 1 << 20
OUTERMOST_BYTES = 64 << 10
"""Members that distinguish other formats from GeoJSON are expected within these."""
RECORD_SEPARATOR = b"\x1e"
COLLECTION = b'"FeatureCollection"'
COLLECTION_WITHIN = 4096
FEATURE = re.compile(rb'"type"\s*:\s*"Feature"')
"""Occurs in GeoJSON only, whose own type may follow all its features."""
SEQUENCE_PREFIX = "GeoJSONSeq:"
LAST_BYTES = 4096
"""Or else within these, behind all features, where some programs write them."""
MEMBER = re.compile(rb'"(\w{1,40})"\s{0,8}:\s{0,8}(?:"(\w{1,40})")?')
SKIPPED_LEVELS = 7
# An unterminated string is one token: searching its end again from each quotation mark in it would take quadratic time.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_ONE = _TEXT + rb'|[{}\[\]:,]|[^\s"{}\[\]:,]+'
TYPE = "type"
_DOCUMENT = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _nested(levels: int) -> bytes:
    """The pattern of an object or array nested at most `levels` deep, whole or cut off."""
    inner = b"|" + _nested(levels - 1) if levels > 1 else b""
    return rb'[{\[](?:[^"{}\[\]]++|' + _TEXT + inner + rb")*+(?:[}\]]|\Z)"


TOKEN = re.compile(_ONE, re.DOTALL)
INNER = re.compile(_nested(SKIPPED_LEVELS) + b"|" + _ONE, re.DOTALL)
"""Inside an object, a value that is not deeply nested is one token, also one that ends beyond the head."""
OTHERS = tuple(row for row in FORMATS if row.reading is not None and row.reading.told_by)
TELLING = tuple(f'"{value or name}"'.encode() for other in OTHERS for name, value in reading_of(other).told_by)
"""Names and values of which every file of another format contains one, and hardly any GeoJSON does."""


def head_of(path: Path, most_bytes: int = HEAD_BYTES) -> bytes:
    """The first bytes of the file at `path`, without a byte order mark."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size_bytes = os.fstat(descriptor).st_size  # a buffer of a megabyte costs more than reading a small file
        return os.read(descriptor, min(size_bytes, most_bytes)).removeprefix(BOM_UTF8)
    finally:
        os.close(descriptor)


def tail_of(path: Path) -> bytes:
    """The last bytes of the file at `path`, if its head may not tell of which kind it is."""
    size_bytes = path.stat().st_size
    if size_bytes <= OUTERMOST_BYTES:
        return b""
    with opened(path) as file:
        file.seek(size_bytes - LAST_BYTES)
        return file.read()


def sequence_prefix(row: Format, head: bytes) -> str:
    """The prefix that selects one of GDAL's GeoJSON drivers, which otherwise read only the first line of a sequence."""
    reading = reading_of(row)
    return SEQUENCE_PREFIX if reading.json and _is_sequence(head, expected=reading.reader is Reader.LINES) else ""


def kind_of_json(row: Format, head: bytes, tail: bytes) -> Format:
    """The format of a file that begins with `head`: `row`, which its extension names, or another JSON format.

    `tail` is its end if it is longer.
    """
    head = head[:OUTERMOST_BYTES]
    members = _whole_members(head) or (dict(outermost_members(head)) if any(text in head for text in TELLING) else {})
    if TYPE in members:
        candidates = [other for other in OTHERS if (TYPE, members[TYPE]) in reading_of(other).told_by]
    elif COLLECTION in head or COLLECTION in tail or FEATURE.search(head):
        candidates = []
    else:
        last = [(name.decode(), value.decode()) for name, value in MEMBER.findall(tail)]
        found = {(name, "") for name in (*members, *dict(last))} | set(last)
        candidates = [other for other in OTHERS if not found.isdisjoint(reading_of(other).told_by)]
    return candidates[0] if candidates else row


def _whole_members(head: bytes) -> Mapping[str, str]:
    """As `outermost_members`, of a head that is one whole, strict document; empty if it is not."""
    try:
        return {name: _text_of(value) for name, value in _DOCUMENT.decode(head).items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _text_of(value: msgspec.Raw) -> str:
    text = bytes(value)
    return text[1:-1].decode() if text.startswith(b'"') else ""


def outermost_members(head: bytes) -> Iterator[tuple[str, str]]:
    """The members of the outermost object, with the values that are strings, as far as `head` reaches."""
    depth, end, name, before = 0, 0, "", ""
    while found := (INNER if depth > 0 else TOKEN).search(head, end):
        token, end = found.group(), found.end()
        if token in {b"{", b"["}:
            depth += 1
        elif token in {b"}", b"]"}:
            depth -= 1
        elif depth == 1 and token == b":":
            name = before
            yield name, ""
        elif depth == 1 and token.startswith(b'"'):
            before = token[1:-1].decode("utf-8", "replace")
            if name:
                yield name, before
                name = ""
        elif depth == 1 and token == b",":
            name = ""


def _is_sequence(head: bytes, *, expected: bool) -> bool:
    """Whether the file is one JSON document per line, and not a single one.

    If the beginning does not show it, the answer is `expected`, which follows from the extension.
    """
    head = head.lstrip()
    first, line_end, rest = head.partition(b"\n")
    if head.startswith(RECORD_SEPARATOR):
        return True
    if line_end and rest.strip():
        return _is_object(first)
    return expected and COLLECTION not in head[:COLLECTION_WITHIN]


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
