"""Finds what the driver does not tell of the cells of a workbook. Runs in the sandbox, without other packages."""

import codecs
import math
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from service.formats.cutting import cut

MEMBER = re.compile(r"xl/(?:worksheets/[^/]+|sharedStrings)\.xml", re.IGNORECASE)
MOST_SCANNED = 256 << 20
CHUNK = 1 << 20
SHEET = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
UP_TO_THE_LAST = re.compile(rb".*(?=<(?:c|si)\b)", re.DOTALL)
"""What is before the last cell, or the last of the texts that cells share."""
DECLARED = re.compile(r"\A\ufeff?(?:<\?xml[^>]*\?>)?")
"""A mark and a declaration of the encoding."""
PREFIX = re.compile(rb"(?:\s|\xef\xbb\xbf|<\?[^?]*+\?>|<!--(?:[^-]|-(?!->))*+-->)*+<([^\s<>/:!?]{1,40}:)")
"""What is before the name of the first element, after comments and the like. To be matched once, from the start."""
FORMULA = b"<f"
ESCAPE = b"_x"
UNCALCULATED = re.compile(
    rb"""<c\b(?![^<>]{0,400}?\bt=["']str["'])[^<>]{0,400}+>\s*+"""
    rb"""<f\b[^<>]{0,400}+(?:(?<=/)>|>[^<]*+</f>)\s*+(?:<v\s*+/>|<v></v>|</c>)"""
)
"""A cell with a formula and no result. A result that is an empty text is one.

No part of the pattern goes beyond the next tag, so that the time it takes grows with the text, not with its square.
"""
MERGED = re.compile(rb"""<mergeCell\s(?=[^<>]*?\bref\s*+=\s*+["'][A-Za-z]*+(?P<row>\d{1,9}))""")
"""Merged cells and their first row."""
TRUTH = re.compile(rb"""<c\s(?=[^<>]*?\bt\s*+=\s*+["']b["'])[^<>]*+(?<!/)>""")
"""A cell with true or false."""
ESCAPED = re.compile(rb"_x[0-9A-Fa-f]{4}_")
"""How workbooks write characters that XML lacks, and carriage returns."""
ISO, ERROR, TEXT, PHONETIC, RICH = b"d", b"e", b"str", b"rPh", b"r"
MISTAKEN = re.compile(
    rb"""(?>(<c\b[^<>]*?\st\s*+=\s*+["'])(%b|%b|%b)(?=["']))(?=[^<>]*+(?<!/)>)""" % (ISO, ERROR, TEXT)
)
"""The start of a cell of a type that the driver ignores.

It takes the year of an ISO date for a number of days, and the text or error that a formula results in for a number if
it looks like one, or if its format is one of dates.
"""
ROW_OR_ERROR = re.compile(rb"""<row\b(?P<row>[^<>]*+)>|(?><c\b[^<>]*?\st\s*+=\s*+["']%b["'])[^<>]*+(?<!/)>""" % ERROR)
LONG = (
    rb"""<c\b(?![^<>]*?\st\s*+=\s*+["'](?!n["']))[^<>]*+>\s*+(?:<f\b[^<>]*+(?:(?<=/)>|>[^<]*+</f>)\s*+)?+"""
    rb"""<v\b[^<>]*+>(?P<long>-?\d{15,40}+)<"""
)
ROW_OR_LONG = re.compile(rb"<row\b(?P<row>[^<>]*+)>|" + LONG)
"""A row, or a cell with a whole number of so many digits that no floating-point number may be it."""
NUMBER_CELL = re.compile(LONG)
MOST_OF_64_BITS = 2**63 - 1
BEYOND = b"beyond"
MAY_BE_BEYOND = re.compile(rb">-?\d{19}")
MAY_BE_LONG = re.compile(rb">-?\d{15}")
ROW_NUMBER = re.compile(rb"""\sr\s*+=\s*+["'](\d{1,9})["']""")
"""Rows need not say where they are."""
READING = re.compile(rb"<rPh\b[^<>]*+>\s*+(?:<t\b[^<>]*+(?:(?<=/)>|>[^<]*+</t\s*+>)\s*+)?+</rPh\s*+>")
"""How a part of a text is pronounced, which the driver takes for more of the text."""
INLINE = re.compile(rb"(?P<start><is\b[^<>]*+(?<!/)>)(?P<runs>(?:[^<]++|<(?!/?(?:is|c|row)\b))*+)(?=</is\s*+>)")
"""The text of a cell that is in the cell."""
RUN = re.compile(rb"</r\s*+>")
RUN_TEXT = re.compile(rb"<t\b[^<>]*+(?<!/)>([^<]*+)</t\s*+>")
"""The text of a run, which is a part with its own font; of several in a cell, the driver takes the first one."""
MAY_BE_MISTAKEN = re.compile(rb"""["'](?:%b|%b|%b)["']|<rPh\b|%b""" % (ISO, ERROR, TEXT, RUN.pattern))


def scan(book: zipfile.ZipFile) -> tuple[int, int, int]:
    """How many cells have a formula without a result, characters are escaped, and cells hold true or false.

    Raises what `zipfile` does if the workbook is damaged.
    """
    uncalculated = escaped = truths = 0
    for part in _parts(book):
        uncalculated += len(UNCALCULATED.findall(part)) if FORMULA in part else 0
        escaped += len(ESCAPED.findall(part)) if ESCAPE in part else 0
        truths += len(TRUTH.findall(part))
    return uncalculated, escaped, truths


def merged(book: zipfile.ZipFile) -> tuple[int, int]:
    """How many cells are merged ones, and the first row of any of them; 0 if there are none.

    Raises what `zipfile` does if the workbook is damaged.
    """
    sheets = filter(SHEET.fullmatch, book.namelist())
    rows = [int(row) for sheet in sheets for part in cut_pieces(pieces(book, sheet)) for row in MERGED.findall(part)]
    return len(rows), min(rows, default=0)


def mistaken(book: zipfile.ZipFile) -> dict[str, Counter[bytes]]:
    """How many cells of each type, readings, runs of texts and numbers the driver may mistake, in each part with such.

    Raises what `zipfile` does if the workbook is damaged.
    """
    counts = {part: Counter(_types(book, part)) for part in filter(MEMBER.fullmatch, book.namelist())}
    return {part: count for part, count in counts.items() if count}


def first_error(book: zipfile.ZipFile, sheets: Mapping[str, Counter[bytes]]) -> int:
    """The row in its sheet, from 1, of the first error that `mistaken` found in `sheets`; 0 if there is none.

    Raises what `zipfile` does if the workbook is damaged.
    """
    first = (sheet for sheet, count in sheets.items() if count[ERROR])
    return next((row for sheet in first for row, _ in _in_rows(book, sheet, ROW_OR_ERROR)), 0)


def rounded(book: zipfile.ZipFile) -> tuple[int, int]:
    """How many cells hold whole numbers that no floating-point number is, and the row of the first in its sheet.

    Raises what `zipfile` does if the workbook is damaged.
    """
    count = first = 0
    for sheet in filter(SHEET.fullmatch, book.namelist()):
        if any(map(MAY_BE_LONG.search, pieces(book, sheet))):
            numbers = [(row, found["long"]) for row, found in _in_rows(book, sheet, ROW_OR_LONG)]
            rows = [row for row, long in numbers if int(long) != int(float(long))]
            count, first = count + len(rows), first or next(iter(rows), 0)
    return count, first


def _in_rows(book: zipfile.ZipFile, sheet: str, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, re.Match[bytes]]]:
    """What `pattern` finds in a sheet beside rows, each with the row in which it is, from 1."""
    row = 0
    for found in chain.from_iterable(map(pattern.finditer, cut_pieces(pieces(book, sheet)))):
        if found["row"] is None:
            yield row, found
        else:
            said = ROW_NUMBER.search(found["row"])
            row = int(said[1]) if said else row + 1


def with_texts(book: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """The content of `member`, in which these cells are texts of the type that the driver knows.

    They have no readings, and each is one run. Whole numbers beyond 64 bits are decimals.
    """
    for part in cut_pieces(pieces(book, member)):
        plain = part
        if MAY_BE_MISTAKEN.search(part):
            plain = INLINE.sub(_one_run, READING.sub(b"", MISTAKEN.sub(rb"\1inlineStr", part)))
        yield NUMBER_CELL.sub(_as_decimal, plain) if MAY_BE_BEYOND.search(plain) else plain


def as_decimal(number: bytes) -> bytes:
    """A whole number as a decimal if it has more than 64 bits, in which the driver would take the largest of these."""
    return number if -MOST_OF_64_BITS - 1 <= int(number) <= MOST_OF_64_BITS else number + b".0"


def _as_decimal(cell: re.Match[bytes]) -> bytes:
    return cell[0].removesuffix(b"<").removesuffix(cell["long"]) + as_decimal(cell["long"]) + b"<"


def _one_run(cell: re.Match[bytes]) -> bytes:
    if not RUN.search(cell["runs"]):
        return cell[0]
    text = b"".join(RUN_TEXT.findall(cell["runs"]))
    return b"%b<t>%b</t>" % (cell["start"], text)


def is_late(days: float) -> bool:
    """Whether the driver may take a moment with thousandths of a second for a whole one: within 0.001 s of it."""
    fraction = days * 86400 % 1
    return 0.99899 <= fraction < 0.9995 or 0.0005 <= fraction < 0.00101  # noqa: PLR2004 -- half a thousandth is rounded


def has_time(days: float) -> bool:
    """Whether a moment is at least a millisecond from midnight."""
    return abs(math.remainder(days, 1)) * 86400 >= 0.001  # noqa: PLR2004 -- a millisecond


def pieces(book: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """The content of a part of the workbook, as `_read` does, with no prefix before the names of its elements.

    Raises what `zipfile` does if the workbook is damaged.
    """
    content = _read(book, member)
    first = next(content, b"")
    prefix = PREFIX.match(first)
    whole = chain([first], content)
    yield from _without(prefix[1], whole) if prefix else whole


def is_prefixed(book: zipfile.ZipFile, member: str) -> bool:
    """Whether the names of elements have a prefix, as in <x:row>, which the driver does not read.

    Raises what `zipfile` does if the workbook is damaged.
    """
    return PREFIX.match(next(_read(book, member), b"")) is not None


def _without(prefix: bytes, content: Iterator[bytes]) -> Iterator[bytes]:
    tag = re.compile(rb"(</?)" + re.escape(prefix))

    def end_in(text: bytes) -> int:
        last = text.rfind(b"<", max(len(text) - len(prefix) - 1, 0))  # a tag whose prefix may not be whole
        return last if last >= 0 else len(text)

    return (tag.sub(rb"\1", text) for text in cut(content, end_in))


def _read(book: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    """The content of a part of the workbook; as UTF-8 also if it is in UTF-16, which the driver reads too."""
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


def _types(book: zipfile.ZipFile, member: str) -> Iterator[bytes]:
    for part in cut_pieces(pieces(book, member)):
        if MAY_BE_MISTAKEN.search(part):
            yield from (cell[1] for cell in MISTAKEN.findall(part))
            yield from (PHONETIC for _ in READING.finditer(part))
            yield from (RICH for cell in INLINE.finditer(part) if RUN.search(cell["runs"]))
        if MAY_BE_BEYOND.search(part):
            longs = (cell["long"] for cell in NUMBER_CELL.finditer(part))
            yield from (BEYOND for long in longs if as_decimal(long) != long)


def _parts(book: zipfile.ZipFile) -> Iterator[bytes]:
    """The content of the sheets and texts, cut before a cell or text, as far as it is scanned."""
    scanned = 0
    for member in filter(MEMBER.fullmatch, book.namelist()):
        for part in cut_pieces(pieces(book, member)) if scanned < MOST_SCANNED else ():
            yield part
            scanned += len(part)
            if scanned >= MOST_SCANNED:
                break


def cut_pieces(content: Iterator[bytes]) -> Iterator[bytes]:
    """`content`, cut before a cell or text."""
    return cut(content, _last_cell)


def _last_cell(text: bytes) -> int:
    """Where the last cell or text begins, not far from the end."""
    least = max(len(text) - CHUNK, 0)
    last = UP_TO_THE_LAST.match(text, least)
    return last.end() if last else least
