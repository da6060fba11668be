"""Finds what users put beside data: cells of workbooks, documents of KMZ, shapes or GML. No target keeps it."""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from service.errors import Rejection
from service.formats.archive import Archive, open_archive
from service.formats.bounds import Bounds, TooMuch
from service.formats.flatgeobuf_header import Said, said_in_header
from service.formats.format import Format, Reader, reading_of
from service.formats.names import listed, shown
from service.formats.table.databases import DESCRIBED, DESCRIPTIONS_LEFT_OUT, RULES_LEFT_OUT, TITLES_LEFT_OUT
from service.formats.workbook_parts import why_unread

MOST_BYTES = 64 << 10
WRITTEN_BY_USERS = re.compile(
    rb"<(?:dc:title|dc:subject|dc:description|cp:keywords|cp:category|meta:keyword)\b[^<>]*+(?<!/)>\s*+[^<\s]"
)
"""Elements that programs leave empty, unlike those about authors, dates and themselves."""
COMMENTS = "Comments on cells ({count:,}) were left out."
LINKS = "Addresses of links ({count:,}) were left out; the texts of their cells were kept."
IN_HEADER = "Metadata of the file ({}) was left out."
FILES = "Files beside the documents ({:,}, first {!r}), such as images, were left out; texts may still name them."
BESIDE_CELLS = (
    (re.compile(r"xl/(?:comments\d*|comments/\w+)\.xml"), re.compile(rb"<(?:\w{1,20}:)?comment\s"), COMMENTS),
    (re.compile(r"xl/worksheets/_rels/[\w.-]+\.rels"), re.compile(rb"/relationships/hyperlink[\"']"), LINKS),
)
"""Members of an XLSX workbook, what is counted in them, and what is told of it."""
BESIDE_SHAPES = re.compile(r"(?i).+\.(?:xml|qmd)")
"""The metadata of shapefiles and tables of MapInfo."""
SCHEMAS = re.compile(r"(?i).+\.xsd")
RESTRICTION = (
    rb"<(?:\w{1,20}:)?restriction\s[^<>]{0,400}>\s{0,400}"
    rb"<(?:\w{1,20}:)?(?:enumeration|pattern|(?:min|max)(?:In|Ex)clusive)\s"
)
"""A rule for values in a schema of XML, but not for their width alone, which programs declare for all texts."""
LONGEST_MATCH = 2 << 10
MOST_COUNTED_BYTES = 16 << 20
"""Of all members together: thousands that unpack to this much fit into a few kilobytes."""
TOLD = "The properties of the workbook (title, subject, description, keywords or category) were left out."


def property_warnings(row: Format, path: Path, bounds: Bounds) -> list[str]:
    """What is told of the properties of the file at `path`, of the format `row`. Blocking.

    Nothing if it is no archive: its driver reports that.

    Raises:
        TooMuch: `bounds` do not allow to unpack what has to be looked at.
        Rejection: it is a workbook in which its driver would find nothing.
    """
    name, document = reading_of(row).properties, reading_of(row).member
    if reading_of(row).has_texts_in_header:
        return list(_in_header(said_in_header(path)))
    if document:
        with suppress(Rejection), open_archive(path, Bounds()) as archive:
            return list(_beside_documents(archive, document))
    told: list[str] = []
    if name:
        unread = ""
        left = most = min(bounds.unpacked_bytes, MOST_COUNTED_BYTES)
        with suppress(Rejection), open_archive(path, Bounds(in_steps=True)) as archive:
            unread = why_unread(row, archive)
            found = next((member for member in archive.members if member.path == name), None)
            if found is not None and WRITTEN_BY_USERS.search(archive.head(found, MOST_BYTES)):
                told.append(TOLD)
            for names, word, sentence in BESIDE_CELLS:
                count, left = _count(archive, names, word, left)
                told += [sentence.format(count=count)] * bool(count)
        if unread:
            raise Rejection(unread)
        if not left and most < MOST_COUNTED_BYTES:
            raise TooMuch("Not everything beside the cells of the workbook was examined.")
    return told


def descriptions_beside_shapes(archive: Archive) -> list[str]:
    """What is told of the metadata in `archive`, which holds shapefiles or tables of MapInfo. Blocking.

    Raises:
        TooMuch: its bounds do not allow to unpack what has to be looked at.
    """
    return _told_of(archive, BESIDE_SHAPES, DESCRIBED, DESCRIPTIONS_LEFT_OUT)


def rules_in_schemas(row: Format, archive: Archive) -> list[str]:
    """What is told of the schemas in `archive`, which holds a file of the format `row`. Blocking; raises the same."""
    return _told_of(archive, SCHEMAS, RESTRICTION, RULES_LEFT_OUT) if reading_of(row).reader is Reader.GML else []


def _told_of(archive: Archive, names: re.Pattern[str], word: bytes, sentence: str) -> list[str]:
    try:
        count, _ = _count(archive, names, re.compile(word), MOST_COUNTED_BYTES)
    except TooMuch:
        raise
    except Rejection:  # what is damaged says nothing of the data
        count = 0
    return [sentence.format(count=f"{count:,}")] * bool(count)


def _in_header(said: Said) -> Iterator[str]:
    if said.texts:
        yield IN_HEADER.format(listed(said.texts))
    for sentence, count in ((TITLES_LEFT_OUT, said.titles), (RULES_LEFT_OUT, said.rules)):
        if count:
            yield sentence.format(count=f"{count:,}")


def _beside_documents(archive: Archive, extension: str) -> Iterator[str]:
    others = [member.path for member in archive.members if member.extension != extension and not member.is_clutter]
    if others:
        yield FILES.format(len(others), shown(others[0]))


def _count(archive: Archive, names: re.Pattern[str], word: re.Pattern[bytes], left: int) -> tuple[int, int]:
    """How often `word` is in members called `names`, in the first `left` bytes of them, and how many more to read."""
    count = 0
    for member in archive.members:
        if left and names.fullmatch(member.path):
            text = b""
            for piece in archive.pieces(member, left):
                left -= len(piece)
                text += piece
                found, text = _counted(word, text, len(text) - LONGEST_MATCH)
                count += found
            count += _counted(word, text, len(text))[0]
    return count, left


def _counted(word: re.Pattern[bytes], text: bytes, before: int) -> tuple[int, bytes]:
    """How often `word` begins in a text before a place, and the rest of the text, in which to look for more.

    Nothing else runs meanwhile, so that the text must be short.
    """
    ends = [found.end() for found in word.finditer(text) if found.start() < before]
    return len(ends), text[max(0, before, *ends[-1:]) :]
