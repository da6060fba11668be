"""Finds what the driver does not tell of the cells of a workbook. Runs in the sandbox, without other packages."""

import codecs
import re
import zipfile
from collections.abc import Iterator
from functools import partial
from itertools import chain

MEMBER = re.compile(r"xl/(?:worksheets/[^/]+|sharedStrings)\.xml", re.IGNORECASE)
MOST_SCANNED = 256 << 20
CHUNK = 1 << 20
SHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
UP_TO_THE_LAST = re.compile(rb".*(?=<(?:\w++:)?(?:c|si)\b)", re.DOTALL)
"""What is before the last cell, or the last of the texts that cells share."""
DECLARED = re.compile(r"\A\ufeff?(?:<\?xml[^>]*\?>)?")
"""A mark and a declaration of the encoding."""
FORMULA = b"<f"
ESCAPE = b"_x"
UNCALCULATED = re.compile(
    rb"""<c\b(?![^<>]{0,400}?\bt=["']str["'])[^<>]{0,400}+>\s*+"""
    rb"""<f\b[^<>]{0,400}+(?:(?<=/)>|>[^<]*+</f>)\s*+(?:<v\s*+/>|<v></v>|</c>)"""
)
"""A cell with a formula and no result. A result that is an empty text is one.

No part of the pattern goes beyond the next tag, so that the time it takes grows with the text, not with its square.
"""
ESCAPED = re.compile(rb"_x[0-9A-Fa-f]{4}_")
"""How workbooks write characters that XML lacks, and carriage returns."""
ISO_DATE = re.compile(rb"""(?>(<(?:\w++:)?c\b[^<>]*?\st\s*+=\s*+["'])d(["']))([^<>]*+(?<!/)>)""")
"""The start of a cell whose type is an ISO date; the driver takes the year for a number of days."""
STYLE = re.compile(rb"""\ss\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
"""The format of a cell; with one of dates, the driver takes texts that are no shared ones for numbers, too."""


def scan(book: zipfile.ZipFile) -> tuple[int, int]:
    """How many cells have a formula without a result, and how many characters are escaped.

    Raises what `zipfile` does if the workbook is damaged.
    """
    uncalculated = escaped = 0
    for part in _parts(book):
        uncalculated += len(UNCALCULATED.findall(part)) if FORMULA in part else 0
        escaped += len(ESCAPED.findall(part)) if ESCAPE in part else 0
    return uncalculated, escaped


def iso_dates(book: zipfile.ZipFile) -> dict[str, int]:
    """How many cells of each sheet that has such are ISO dates.

    Raises what `zipfile` does if the workbook is damaged.
    """
    sheets = filter(SHEET.fullmatch, book.namelist())
    counts = {sheet: sum(map(_dated, _cut(pieces(book, sheet)))) for sheet in sheets}
    return {sheet: count for sheet, count in counts.items() if count}


def with_texts(book: zipfile.ZipFile, sheet: str) -> Iterator[bytes]:
    """The content of `sheet`, in which ISO dates are texts."""
    for part in _cut(pieces(book, sheet)):
        yield ISO_DATE.sub(_as_text, part) if _may_be_dated(part) else part


def is_late(days: float) -> bool:
    """Whether the driver takes a moment with thousandths of a second for the next second; it rounds from 0.999 s on."""
    return 0.99899 <= days * 86400 % 1 < 0.9995  # noqa: PLR2004 -- half a thousandth less is the next second


def pieces(book: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """The content of a part of the workbook; as UTF-8 also if it is in UTF-16, which the driver reads too.

    Raises what `zipfile` does if the workbook is damaged.
    """
    with book.open(member) as file:
        chunks = iter(partial(file.read, CHUNK), b"")
        first = next(chunks, b"")
        whole: Iterator[bytes] = chain([first], chunks)
        if encoding := _wide_encoding(first):
            texts = codecs.iterdecode(whole, encoding, "replace")
            whole = (DECLARED.sub("", text).encode() for text in texts)
        yield from whole


def _wide_encoding(beginning: bytes) -> str:
    """UTF-16 as parsers of XML recognize it: by its mark or by a zero, which no other text has."""
    mark, zero = beginning[:2], beginning[:2].find(0)
    if mark == codecs.BOM_UTF16_BE or zero == 0:
        return "utf-16-be"
    return "utf-16-le" if mark == codecs.BOM_UTF16_LE or zero == 1 else ""


def _may_be_dated(part: bytes) -> bool:
    return b'"d"' in part or b"'d'" in part


def _dated(part: bytes) -> int:
    return len(ISO_DATE.findall(part)) if _may_be_dated(part) else 0


def _as_text(cell: re.Match[bytes]) -> bytes:
    return STYLE.sub(b"", cell[1]) + b"str" + cell[2] + STYLE.sub(b"", cell[3])


def _parts(book: zipfile.ZipFile) -> Iterator[bytes]:
    """The content of the sheets and texts, cut before a cell or text, as far as it is scanned."""
    scanned = 0
    for member in filter(MEMBER.fullmatch, book.namelist()):
        for part in _cut(pieces(book, member)) if scanned < MOST_SCANNED else ():
            yield part
            scanned += len(part)
            if scanned >= MOST_SCANNED:
                break


def _cut(content: Iterator[bytes]) -> Iterator[bytes]:
    """`content`, cut before a cell or text."""
    rest = b""
    for piece in content:
        text = rest + piece
        least = max(len(text) - CHUNK, 0)
        last = UP_TO_THE_LAST.match(text, least)
        end = last.end() if last else least
        yield text[:end]
        rest = text[end:]
    yield rest
