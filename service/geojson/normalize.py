"""Writes a copy of a document that the converter reads completely, and in the way in which it was scanned.

Unpaired surrogates are replaced, and numbers beyond 64 bits by the nearest within them. A single object or a sequence
of objects becomes a FeatureCollection, because the converter would read it with another parser, which formats numbers
in objects differently and has fewer options.
"""

import codecs
import json
import mmap
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Raw

from service.formats.geometry import FAMILIES
from service.geojson.cursor import SPACE_OR_SEPARATOR, Cursor, text_of
from service.geojson.document import COLLECTION
from service.geojson.features import lenient_decode
from service.geojson.findings import Scan
from service.geojson.numbers import pieces_within_64_bits
from service.geojson.surrogates import REPLACEMENT, find_lone, replace_lone

_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_FEATURE = "feature"
_AS_WRITTEN = b'"Feature"'
_ELEMENT = msgspec.json.Decoder(Raw)
WRAP, MEND, KEEP = "wrap", "mend", "keep"
"""Wrap a sequence that needs nothing else; mend its objects as well; mend a collection."""
WINDOW_BYTES = 256 << 10
_GEOMETRIES = frozenset(map(str.lower, FAMILIES))


def mode_for(found: Scan) -> str | None:
    """How a document that was scanned must be normalized; None if it needs no copy."""
    needs_mending = found.half_letters or found.is_beyond_64_bits
    if found.is_collection:
        return KEEP if needs_mending else None
    return MEND if needs_mending else WRAP


def normalize(document: Path, target: Path, mode: str) -> None:
    """Write the normalized copy of a scanned document."""
    with document.open("rb") as file, target.open("wb") as out:
        text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if mode == KEEP:
            out.writelines(pieces_within_64_bits(text))
        else:
            _wrap(out, Cursor(text), _mended if mode == MEND else bytes)
    if mode == KEEP:
        with target.open("r+b") as copy, mmap.mmap(copy.fileno(), 0) as text:
            for at in find_lone(text):
                text[at : at + len(REPLACEMENT)] = REPLACEMENT


def _mended(text: bytes) -> bytes:
    return replace_lone(b"".join(pieces_within_64_bits(text)))


def _wrap(out: BinaryIO, cursor: Cursor, mend: Callable[[bytes], bytes]) -> None:
    """Write a sequence of objects as the features of a collection."""
    has_mark = bytes(cursor.view[: len(codecs.BOM_UTF8)]) == codecs.BOM_UTF8
    cursor.position = len(codecs.BOM_UTF8) if has_mark else 0
    cursor.skip(SPACE_OR_SEPARATOR)
    text = mend(_next(cursor))
    members = _members(text)
    crs = b'"crs": %b, ' % bytes(members["crs"]) if "crs" in members else b""
    out.write(b'{"type": "%b", %b"features": [\n%b' % (COLLECTION.encode(), crs, _feature(text, members)))
    cursor.skip(SPACE_OR_SEPARATOR)
    while cursor.byte():
        limit = cursor.position + WINDOW_BYTES
        if features := mend(_in_a_row(cursor)):
            out.write(b",\n%b" % features)
            cursor.skip(SPACE_OR_SEPARATOR)
        while cursor.position < limit and cursor.byte():
            text = mend(_next(cursor))
            out.write(b",\n%b" % _feature(text, _members(text)))
            cursor.skip(SPACE_OR_SEPARATOR)
        cursor.release()
    out.write(b"\n]}\n")


def _next(cursor: Cursor) -> bytes:
    """The object that starts here; advances past it."""
    start = cursor.position
    cursor.pass_value()
    return bytes(cursor.view[start : cursor.position])


def _in_a_row(cursor: Cursor) -> bytes:
    """The features of one window as elements of an array; advances past it. Empty if one must be changed."""
    end = cursor.data.rfind(b"\n", cursor.position, cursor.position + WINDOW_BYTES) + 1
    text = bytes(cursor.view[cursor.position : end])
    try:
        if any(bytes(members.get("type", b"")) != _AS_WRITTEN for members in _MEMBERS.decode_lines(text)):
            return b""
        elements = _ELEMENT.decode_lines(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return b""
    cursor.position = max(cursor.position, end)
    return b",\n".join(map(bytes, elements))


def _members(text: bytes) -> dict[str, Raw]:
    try:
        return _MEMBERS.decode(text)
    except msgspec.DecodeError:
        value = lenient_decode(text_of(text))[0]
        return {name: Raw(json.dumps(member).encode()) for name, member in value.items()}


def _type(members: dict[str, Raw]) -> str:
    kind = msgspec.json.decode(members.get("type", b"null"))
    return kind.lower() if isinstance(kind, str) else ""


def _feature(text: bytes, members: dict[str, Raw]) -> bytes:
    """An object as an element of `features`; a bare geometry is wrapped in a feature."""
    kind = _type(members)
    if kind in _GEOMETRIES:
        return b'{"type": "Feature", "properties": {}, "geometry": %b}' % text
    if kind == _FEATURE and bytes(members["type"]) != _AS_WRITTEN:
        return msgspec.json.encode(members | {"type": Raw(_AS_WRITTEN)})
    return text
