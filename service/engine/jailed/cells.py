"""Finds what the driver does not tell of the cells of a workbook. Runs in the sandbox, without other packages."""

import re
import zipfile
from collections.abc import Iterator

MEMBER = re.compile(r"xl/(?:worksheets/[^/]+|sharedStrings)\.xml", re.IGNORECASE)
MOST_SCANNED = 256 << 20
CHUNK = 1 << 20
BEGINNINGS = (b"<c ", b"<si")
"""Of cells, and of the texts that they share."""
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


def scan(book: zipfile.ZipFile) -> tuple[int, int]:
    """How many cells have a formula without a result, and how many characters are escaped.

    Raises what `zipfile` does if the workbook is damaged.
    """
    uncalculated = escaped = 0
    for part in _parts(book):
        uncalculated += len(UNCALCULATED.findall(part)) if FORMULA in part else 0
        escaped += len(ESCAPED.findall(part)) if ESCAPE in part else 0
    return uncalculated, escaped


def _parts(book: zipfile.ZipFile) -> Iterator[bytes]:
    """The content of the sheets and texts, cut before a cell or text, as far as it is scanned."""
    scanned = 0
    for member in filter(MEMBER.fullmatch, book.namelist()):
        with book.open(member) as file:
            rest = b""
            while scanned < MOST_SCANNED and (chunk := file.read(CHUNK)):
                scanned += len(chunk)
                text = rest + chunk
                end = max(*map(text.rfind, BEGINNINGS), len(text) - CHUNK, 0)
                yield text[:end]
                rest = text[end:]
            yield rest
