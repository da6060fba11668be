"""Makes the driver understand a workbook's formats of cells. Runs in the sandbox.

Only its format distinguishes a date from a number. The driver looks for some letters in a format, wherever they are. It
knows no hour, day or month of one letter, and takes a number for a date if the text beside it has them. It does not
know the built-in formats of East Asian versions.
"""

import lzma
import re
import shutil
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from decimal import Decimal
from html import unescape
from itertools import chain, count, islice
from typing import NamedTuple
from unicodedata import category

from service.engine.jailed.cells import (
    CHUNK,
    ERROR,
    ISO,
    PHONETIC,
    SHEET,
    first_error,
    has_time,
    is_late,
    is_prefixed,
    merged,
    mistaken,
    pieces,
    rounded,
    scan,
    with_texts,
)
from service.engine.jailed.exits import Exit
from service.engine.jailed.sheet_rows import Cell, rows_found
from service.formats.cutting import cut

MEMBER = "xl/styles.xml"
BOOK_MEMBER = "xl/workbook.xml"
PART = re.compile(
    r"xl/(?:(?:workbook|styles|sharedStrings|worksheets/[^/]+)\.xml|_rels/workbook\.xml\.rels)", re.IGNORECASE
)
"""The parts that the driver reads."""
MOST_BYTES = 16 << 20
CODE = re.compile(rb"""(\bformatCode\s*=\s*(?P<quote>["']))(.*?)((?P=quote))""", re.DOTALL)
ADDRESS = re.compile(rb"""(<sheet\s(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*?\s)(?!r:)[\w.-]{1,40}+:(?=id\s*+=)""")
"""What the main part says of a sheet, up to the reference to its part, if that has another prefix than usual."""
SINCE_1904 = re.compile(rb"""\bdate1904\s*=\s*["'](?:1|true)["']""")
FORMATS = re.compile(rb"(?>.*?<cellXfs\b)(?P<listed>.*?)</cellXfs\s*+>", re.DOTALL)
"""The formats of cells, which cells name by their position. To be matched once, from the start."""
FORMAT = re.compile(rb"<xf\b[^<>]*+>")
NUMBER = re.compile(rb"""(\bnumFmtId\s*=\s*["'])(\d{1,9})(["'])""")
OWN = re.compile(rb"<numFmt\b[^<>]*+>")
CELL = re.compile(rb"""<c\b[^<>]{0,400}?\bs\s*+=\s*+["'](?P<place>\d{1,9})["'][^<>]{0,400}+(?<!/)>""")
"""The start of a cell that names its format; its content is looked at only if that matters."""
VALUE = re.compile(
    rb"\s*+(?:<f\b[^<>]{0,400}+(?:(?<=/)>|>[^<]*+</f>)\s*+)?+<v\b[^<>]{0,400}+>\s*+"
    rb"(?P<number>[-+]?(?:\d{1,400}+\.?\d{0,400}+|\.\d{1,400}+)(?:[eE][-+]?\d{1,3})?)"
)
"""The number in a cell, from the end of its start tag, past a formula."""
TEXT_CELL = re.compile(rb"""\bt\s*=\s*["'](?!n["'])""")
DATED = re.compile(rb"(?P<tag>%b)%b(?=\s*+<)" % (CELL.pattern, VALUE.pattern))
"""Such a cell with a number in it."""
DAYS_UNTIL_1904 = 1462
UNTIL_MIDNIGHT = 86399.9995 / 86400
"""The number of a cell from which on a time of day is 24 hours in milliseconds, and becomes 00:00."""
DAY_ONE = 1.0
"""The number of a cell from which on it is no time of day."""
FIRST_OWN, MOVED = 164, 1_000_000
"""The first number of formats that the driver looks up in the workbook; lower ones, as Gnumeric writes, are moved."""
DATE, CLOCK = b"14", b"21"
"""Built-in formats that the driver knows."""
DAYS = frozenset({b"14", b"15", b"16", b"17"})
DATES = DAYS | {b"22"}
ELAPSED_BUILT_IN = frozenset(map(b"%d".__mod__, range(45, 48)))
CLOCKS = frozenset(map(b"%d".__mod__, range(18, 22))) | ELAPSED_BUILT_IN
EAST_ASIAN_DATES = frozenset(map(b"%d".__mod__, (*range(27, 32), 36, 50, 51, 54, 57, 58)))
EAST_ASIAN_CLOCKS = frozenset({b"32", b"33"})
EAST_ASIAN = frozenset({b"34", b"35", b"52", b"53", b"55", b"56"})
"""Dates in some languages, times of day in others; a workbook does not say which language it means."""
PLAIN_DATE = b"YYYY-MM-DD"
PLAIN_CLOCK = b"HH:MM:SS"
GENERAL, ELAPSED_KIND = b"general", b"elapsed"
"""Kinds of formats that have no plain one."""
TRANSLATED = "standard"
"""The general format as some programs write it, in the language of their users; its letters stand for no day."""
PLAIN_MOMENT = b"YYYY-MM-DD HH:MM:SS.000"
PLAIN = frozenset({PLAIN_MOMENT, PLAIN_DATE, PLAIN_CLOCK})
"""The formats that we write for dates and times."""


class FormatKind(NamedTuple):
    """A kind of formats: those of a workbook's own by their plain ones (`_kind`), and the numbers of built-in ones."""

    own: Container[bytes]
    built_in: Container[bytes]

    def has(self, code: str | int) -> bool:
        """Whether a format is of this kind: one of the workbook, as it is written in XML, or the number of another."""
        return b"%d" % code in self.built_in if isinstance(code, int) else _kind(code) in self.own


MOMENTS = FormatKind(PLAIN, DATES | CLOCKS)
ONLY_DATES = FormatKind({PLAIN_DATE}, DAYS)
"""Those that do not show a time of day."""
ONLY_CLOCKS = FormatKind({PLAIN_CLOCK}, CLOCKS - ELAPSED_BUILT_IN)
"""Those that do not show a date."""
ELAPSED_TIMES = FormatKind({ELAPSED_KIND}, ELAPSED_BUILT_IN)
"""Those that are read as numbers of days."""
REFERENCE = re.compile(rb"""\sr\s*+=\s*+["']([A-Za-z]*)(\d*)["']""")
"""Where a cell or row is in the sheet; they need not say it."""
ROW_OR_CELL = re.compile(
    rb"""<(?:row\b[^<>]*+>|c\b[^<>]{0,400}?\bs\s*+=\s*+["'](?P<place>\d{1,9})["'][^<>]{0,400}+(?<!/)>)"""
)
"""The start of a row, or of a cell as above."""
LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[[^\[\]]*\]', re.DOTALL)
"""Parts of a format that are not placeholders: texts, blanks, colors, conditions."""
WORDS = re.compile(r'"([^"]*)"|\\(.)|\[\$([^\[\]-]*)[^\[\]]*\]', re.DOTALL)
"""Texts in a format, and the currency in `[$€-407]`."""
SIGNS = frozenset({"Sc", "So"})
"""The categories of € and °."""
CURRENCIES, PERCENTAGES = frozenset({5, 6, 7, 8, 42, 44}), frozenset({9, 10})
"""The numbers of such built-in formats."""
ZEROS = re.compile(r"[0 ()/+-]*")
"""What is left of a format for numbers that consist of digits, such as postal codes, without its literal parts."""
ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]")
FRACTION = re.compile(r"s\.0+")
DIGIT = re.compile("[0#?]")
TIME = re.compile("[hs]")
DAY = re.compile("[bdegy]")
"""Beside days and years: those of East Asian eras (`e`, `g`) and of the Buddhist calendar (`b`)."""
DAY_OR_MONTH = re.compile("[abdegmy]")
"""Beside hours or seconds, `m` stands for minutes and `a` for a half of a day, otherwise for a day of the week."""
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    KeyError,
    EOFError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
UNREADABLE = (*DAMAGED, OSError, MemoryError)
"""What `zipfile` raises: a member that is damaged, missing or cut off, packed in an unknown way, or encrypted."""


def main(workbook: str, plain: str) -> dict[str, int]:
    """Write a copy of `workbook` to `plain` whose formats and cells the driver understands, unless it understands all.

    In the copy, days are counted from 1900, names of elements have no prefix, and references to sheets the usual one.

    Returns what the driver does not tell: how many formulas have no result, how many
    characters are escaped, how many cells hold true or false (`truths`), how many times become `late`, how many
    moments are cells of a header (`named`), and how many ISO dates (`iso`) and errors (`errors`) are texts in the
    copy, the row of the first in its sheet (`first_errors`), how many readings of texts the copy lacks
    (`phonetic`), and how many dates lose a time of day (`timed`), times of day lose days (`dated`), times are
    numbers of days (`elapsed`), and numbers have formats that show words (`worded`) or percentages (`percent`),
    each with the lowest row of these, how many numbers have formats that show zeros before some of them (`padded`),
    how many whole numbers are `rounded` beside decimals, and how many cells are `merged`, each with the first row.
    """
    try:
        with zipfile.ZipFile(workbook) as book:
            content, description = _read(book, MEMBER), _read(book, BOOK_MEMBER)
            addressed = ADDRESS.sub(rb"\1r:", description)
            understood = _moved(CODE.sub(lambda found: found[1] + _understood(found[3]) + found[4], content))
            built_in = _built_in(understood)
            is_early = SINCE_1904.search(description) is not None
            largest = _largest(book, {place: DAY_ONE for place, number in built_in.items() if number in EAST_ASIAN})
            uncalculated, escaped, truths = scan(book)
            long, first_long = rounded(book)
            joined, first_joined = merged(book)
            understood = _with_known_numbers(understood, built_in, largest)
            kinds = dict.fromkeys(
                _places(understood, MOMENTS.has) - _places(understood, ELAPSED_TIMES.has), Cell.MOMENT
            )
            kinds |= dict.fromkeys(_places(understood, ONLY_CLOCKS.has), Cell.CLOCK)
            laid_out = rows_found(book, description, kinds)
            moments = _moments(
                book,
                understood,
                shown={
                    "elapsed": _places(content, ELAPSED_TIMES.has),
                    "worded": _places(content, shows_words),
                    "percent": _places(content, shows_percent),
                },
                padded=_padded(content),
            )
            ours = mistaken(book)
            error = first_error(book, ours)
            is_whole = not content or book.getinfo(MEMBER).file_size < MOST_BYTES
            prefixed = [name for name in filter(PART.fullmatch, book.namelist()) if is_prefixed(book, name)]
    except UNREADABLE:
        return {}  # the driver reports what is wrong
    changed: dict[str, Iterable[bytes]] = {MEMBER: [understood]} if is_whole and understood != content else {}
    dates = frozenset(_dates(understood)) if is_early else ()
    if addressed != description:
        changed[BOOK_MEMBER] = [addressed]
    if changed or ours or dates or prefixed:
        try:
            with zipfile.ZipFile(workbook) as book:
                changed = {name: pieces(book, name) for name in prefixed} | changed
                changed |= {name: with_texts(book, name) for name in ours}
                if dates:
                    sheets = filter(SHEET.fullmatch, book.namelist())
                    changed |= {name: _since_1900(with_texts(book, name), dates) for name in sheets}
                    changed[BOOK_MEMBER] = [SINCE_1904.sub(b"", addressed)]
                copy_with(changed, workbook, plain)
        except DAMAGED:  # such as a member that begins before the workbook; the driver may not see that
            sys.exit(Exit.DAMAGED)
    found = {"uncalculated": uncalculated, "escaped": escaped, "truths": truths, **moments}
    texts = sum(ours.values(), Counter())
    found |= {"iso": texts[ISO], "errors": texts[ERROR], "first_errors": error, "phonetic": texts[PHONETIC]}
    found |= {"rounded": long, "first_rounded": first_long, "merged": joined, "first_merged": first_joined}
    return {**found, **laid_out}


def understood(code: str) -> str:
    """The format `code`, as it is written in XML, or a plain one of the same kind if the driver could mistake it."""
    return _understood(code.encode()).decode()


def padded_by(code: str | int) -> range:
    """The numbers of digits that whole numbers have to which a format, as `FormatKind.has` takes it, adds zeros."""
    placeholders = "" if isinstance(code, int) else LITERAL.sub("", unescape(code)).partition(";")[0]
    return range(1, placeholders.count("0") if ZEROS.fullmatch(placeholders) else 0)


def shows_words(code: str | int) -> bool:
    """Whether a format, as `FormatKind.has` takes it, shows letters or signs beside numbers, as in 5 km and 5 €."""
    if isinstance(code, int):
        return code in CURRENCIES
    text = unescape(code)
    literal = "".join(chain.from_iterable(WORDS.findall(text)))
    signs = literal + LITERAL.sub("", text)
    return not _is_moment(code) and (any(map(str.isalnum, literal)) or any(category(sign) in SIGNS for sign in signs))


def shows_percent(code: str | int) -> bool:
    """Whether a format, as `FormatKind.has` takes it, shows 0.5 as 50 %."""
    if isinstance(code, int):
        return code in PERCENTAGES
    return not _is_moment(code) and "%" in LITERAL.sub("", unescape(code))


def _is_moment(code: str) -> bool:
    return _kind(code) in {*PLAIN, ELAPSED_KIND}


def is_east_asian(number: int) -> bool:
    """Whether a format that a workbook does not define itself is one of those that the driver does not know."""
    return b"%d" % number in EAST_ASIAN_DATES | EAST_ASIAN_CLOCKS | EAST_ASIAN


def _own(styles: bytes) -> dict[bytes, bytes]:
    """The formats that the workbook defines, by their numbers."""
    tags = [(NUMBER.search(tag), CODE.search(tag)) for tag in OWN.findall(styles)]
    return {number[2]: code[3] for number, code in tags if number and code}


def _numbers(styles: bytes) -> list[bytes]:
    """The number of each format of cells."""
    listed = FORMATS.match(styles)
    found = map(NUMBER.search, FORMAT.findall(listed["listed"]) if listed else [])
    return [number[2] if number else b"0" for number in found]


def _built_in(styles: bytes) -> dict[int, bytes]:
    """The numbers of formats that the workbook does not define itself, by position."""
    own = _own(styles)
    return {place: number for place, number in enumerate(_numbers(styles)) if number not in own}


def _dates(styles: bytes) -> list[int]:
    """The positions of the formats that the driver takes for dates."""
    own = _own(styles)
    return [
        place
        for place, number in enumerate(_numbers(styles))
        if (b"YYYY-MM-DD" in own[number] if number in own else number in DATES)
    ]


def _since_1900(parts: Iterable[bytes], dates: Container[int]) -> Iterator[bytes]:
    """The cells of a sheet that counts days from 1904, with dates, which have the formats at `dates`, as from 1900."""

    def counted(cell: re.Match[bytes]) -> bytes:
        if int(cell["place"]) not in dates or TEXT_CELL.search(cell["tag"]):
            return cell[0]
        days = Decimal(cell["number"].decode()) + DAYS_UNTIL_1904
        return cell[0].removesuffix(cell["number"]) + str(days).encode()

    return (DATED.sub(counted, part) for part in parts)


def _largest(book: zipfile.ZipFile, wanted: Mapping[int, float]) -> dict[int, float]:
    """The largest number in the cells of each format by its position, at least up to the one that is `wanted`."""
    found: dict[int, float] = {}
    left = dict(wanted)
    for name in filter(SHEET.fullmatch, book.namelist()) if left else ():
        for text in _rows(pieces(book, name)):
            for place, value in _numbers_of(text, left):
                found[place] = max(found.get(place, 0.0), value)
                if found[place] >= left[place]:
                    del left[place]
            if not left:
                return found
    return found


def _places(styles: bytes, is_of_kind: Callable[[str | int], bool]) -> set[int]:
    """The positions of the formats of a kind."""
    codes = {number: code.decode("utf-8", "replace") for number, code in _own(styles).items()}
    return {place for place, number in enumerate(_numbers(styles)) if is_of_kind(codes.get(number, int(number)))}


def _padded(styles: bytes) -> dict[int, tuple[bytes, range]]:
    """By position, the numbers of the formats that show zeros before numbers, and of how many digits these are."""
    codes = {number: padded_by(code.decode("utf-8", "replace")) for number, code in _own(styles).items()}
    return {place: (number, codes[number]) for place, number in enumerate(_numbers(styles)) if codes.get(number)}


def _moments(
    book: zipfile.ZipFile, styles: bytes, *, shown: Mapping[str, set[int]], padded: Mapping[int, tuple[bytes, range]]
) -> dict[str, int]:
    """How many times the driver takes for whole seconds, and how many dates and times are in a first row.

    Also how many dates lose a time of day that their format does not show, how many times of day lose days, and how
    many numbers are of formats that are `shown`, by kind; with the lowest row of each. And how many numbers are of
    formats that have `padded` one with zeros.
    """
    wanted, days, clocks = (_places(styles, kind.has) for kind in (MOMENTS, ONLY_DATES, ONLY_CLOCKS))
    found: Counter[str] = Counter()
    numbers, are_padded = Counter[bytes](), set[bytes]()
    looked_at = wanted.union(padded, *shown.values())
    for name in filter(SHEET.fullmatch, book.namelist()) if looked_at else ():
        for row, place, number in _moments_of(_rows(pieces(book, name)), looked_at):
            if place in padded:
                code, digits = padded[place]
                numbers[code] += 1
                if number.isdigit() and len(number) in digits:
                    are_padded.add(code)
            value = float(number)
            found["late"] += place in wanted and is_late(value)
            found["named"] += place in wanted and row == 1
            kinds = {
                "timed": place in days and has_time(value),
                "dated": place in clocks and not 0 <= value < UNTIL_MIDNIGHT,
                **{kind: place in places for kind, places in shown.items()},
            }
            for kind in filter(kinds.get, kinds):
                found[kind] += 1
                found[f"first_{kind}"] = min(row, found[f"first_{kind}"] or row)
    if are_padded:
        found["padded"] = sum(numbers[code] for code in are_padded)
    return dict(found)


def _moments_of(texts: Iterator[bytes], wanted: Container[int]) -> Iterator[tuple[int, int, bytes]]:
    """The row, the position of the format and the number of each cell whose format is `wanted`."""
    row = 0
    for text in texts:
        for found in ROW_OR_CELL.finditer(text):
            if found["place"] is None:
                row = _row_of(found[0], row + 1)
            elif (
                int(found["place"]) in wanted
                and not TEXT_CELL.search(found[0])
                and (value := VALUE.match(text, found.end()))
            ):
                yield _row_of(found[0], row), int(found["place"]), value[1]


def _row_of(tag: bytes, row: int) -> int:
    """The row that a row or a cell says it is, or else `row`."""
    said = REFERENCE.search(tag)
    return int(said[2]) if said and said[2] else row


def _numbers_of(text: bytes, wanted: Container[int]) -> Iterator[tuple[int, float]]:
    """The position of the format and the number of each cell whose format is `wanted` when its turn comes."""
    for cell in CELL.finditer(text):
        place = int(cell[1])
        if place in wanted and not TEXT_CELL.search(cell[0]) and (value := VALUE.match(text, cell.end())):
            yield place, float(value[1])


def _rows(sheet: Iterator[bytes]) -> Iterator[bytes]:
    """The content of `sheet`, cut between cells."""
    return cut(sheet, _last_of_rows)


def _last_of_rows(text: bytes) -> int:
    """Where the last tag of rows ends that are whole, or almost."""
    end = max(text.rfind(b"<", 0, max(text.rfind(b"row>"), 0)), 0)
    if len(text) - end > MOST_BYTES:
        raise ValueError("a row is too long")
    return end


def _with_known_numbers(styles: bytes, built_in: Mapping[int, bytes], largest: Mapping[int, float]) -> bytes:
    """`styles` with formats that the driver knows in place of East Asian ones."""
    places = count()

    def known(tag: re.Match[bytes]) -> bytes:
        place = next(places)
        number = built_in.get(place, b"")
        is_time = number in EAST_ASIAN_CLOCKS or (number in EAST_ASIAN and largest.get(place, 1.0) < 1)
        if is_time or number in EAST_ASIAN_DATES | EAST_ASIAN:
            return NUMBER.sub(rb"\g<1>" + (CLOCK if is_time else DATE) + rb"\g<3>", tag[0])
        return tag[0]

    return _with_formats(styles, known)


def _moved(styles: bytes) -> bytes:
    """`styles` with dates and times of the workbook's own under numbers at which the driver looks them up."""
    low = {
        number
        for number, code in _own(styles).items()
        if int(number) < FIRST_OWN and code in PLAIN and number not in DATES | CLOCKS
    }
    if not low:
        return styles

    def moved(tag: re.Match[bytes]) -> bytes:
        return NUMBER.sub(lambda at: at[1] + b"%d" % (int(at[2]) + MOVED * (at[2] in low)) + at[3], tag[0])

    return _with_formats(OWN.sub(moved, styles), moved)


def _with_formats(styles: bytes, change: Callable[[re.Match[bytes]], bytes]) -> bytes:
    """`styles` with the formats of cells as `change` makes them."""
    listed = FORMATS.match(styles)
    if listed is None:
        return styles
    start, end = listed.span("listed")
    return styles[:start] + FORMAT.sub(change, listed["listed"]) + styles[end:]


def _read(book: zipfile.ZipFile, member: str) -> bytes:
    """The content of a part, as far as it is looked at; nothing if there is none, as workbooks need no formats."""
    return b"".join(islice(pieces(book, member), MOST_BYTES // CHUNK + 1)) if member in book.NameToInfo else b""


def _understood(code: bytes) -> bytes:
    """The format `code`, or a plain one of the same kind if the driver could mistake it."""
    text = code.decode("utf-8", "replace")
    kind = _kind(text)
    return kind if kind in PLAIN else b"0" if kind != GENERAL and re.search("[dhy]", unescape(text).lower()) else code


def _kind(code: str) -> bytes:
    """The plain format of the kind of `code`; or whether it is a general one, one of elapsed times, or neither."""
    text = unescape(code).lower()
    placeholders = FRACTION.sub("s", LITERAL.sub("", text).partition(";")[0])
    if "general" in placeholders:
        return GENERAL
    if ELAPSED.search(text):
        return ELAPSED_KIND
    if DIGIT.search(placeholders) or placeholders == TRANSLATED:
        return b""
    is_time = bool(TIME.search(placeholders))
    if (DAY if is_time else DAY_OR_MONTH).search(placeholders):
        return PLAIN_MOMENT if is_time else PLAIN_DATE
    return PLAIN_CLOCK if "h" in placeholders else ELAPSED_KIND if is_time else b""


def copy_with(changed: Mapping[str, Iterable[bytes]], workbook: str, plain: str) -> None:
    """Copy `workbook`, and put the members that are `changed` after the others, each in pieces.

    The former ones are not listed any more.
    """
    shutil.copyfile(workbook, plain)
    with zipfile.ZipFile(plain, "a", zipfile.ZIP_DEFLATED) as book:
        book.filelist = [member for member in book.filelist if member.filename not in changed]
        for name, content in changed.items():
            del book.NameToInfo[name]
            with book.open(name, "w", force_zip64=True) as file:
                file.writelines(content)
