"""Makes texts of the times of an ODS workbook. Runs in the sandbox: `python -m …durations ODS PLAIN`.

The driver knows one notation, PT10H30M00S: it cuts fractions of seconds, takes 100 hours for 1, and makes nothing of
others, such as PT010H30M00S, which Gnumeric writes. Beside texts it leaves times in that notation. It also stops,
without a message, at rows that repeat more than 10,000 times: a workbook with others after them is refused. Uses only
the standard library.
"""

import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from itertools import chain

from service.engine.jailed.exits import Exit
from service.engine.jailed.styles import UNREADABLE

MEMBER = "content.xml"
CHUNK = 1 << 20
LONGEST_CELL = 1 << 16
CELL = re.compile(
    rb"""<table:table-cell\b(?P<said>(?>[^<>]*?\boffice:time-value\s*+=\s*+["'](?P<time>[^"'<>]*+)["'])"""
    rb"""(?:[^<>/]++|/(?!>))*+)"""
    rb"""(?:/>|>(?:[^<]++|<(?!/?table:table-cell\b))*+</table:table-cell\s*+>)"""
)
"""A cell with a time, and its text, which may say less. No look goes beyond the next cell, or back to another time."""
TYPE = re.compile(rb"""(\boffice:value-type\s*+=\s*+["'])time\b""")
VALUE = re.compile(rb"""\s*+\boffice:time-value\s*+=\s*+["'][^"']*+["']""")
NOTATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d{1,9})D)?(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,9}(?:[.,]\d{1,20})?)S)?)?",
    re.ASCII,
)
MOST_ROWS = 10_000
ROWS = re.compile(rb'\bnumber-rows-repeated="([^"]*+)"|(</table:table>)|<text:p\b|\soffice:value')
"""Rows that repeat, the end of a sheet, and the text or value of a cell that is not empty."""
A_DAY, AN_HOUR, A_MINUTE = 86400, 3600, 60
MILLISECOND = Decimal("0.001")


def main(workbook: str, plain: str) -> None:
    """Write a copy of `workbook` to `plain` with its times as texts, such as 10:30:00, unless it has none."""
    try:
        with zipfile.ZipFile(workbook) as book:
            if _stops_early(_parts(book)):
                sys.exit(Exit.REPEATED_ROWS)
            has_times = any(map(CELL.search, _parts(book)))
        if has_times:
            _copy(workbook, plain)
    except UNREADABLE:
        return  # the driver reports what is wrong


def _parts(book: zipfile.ZipFile) -> Iterator[bytes]:
    """The cells of the workbook, cut before one of them."""
    rest = b""
    with book.open(MEMBER) as file:
        for piece in iter(partial(file.read, CHUNK), b""):
            text = rest + piece
            end = text.rfind(b"<table:", max(len(text) - LONGEST_CELL, 0))
            end = len(text) if end < 0 else end
            yield text[:end]
            rest = text[end:]
    yield rest


def _stops_early(parts: Iterator[bytes]) -> bool:
    """Whether cells follow rows, of the same sheet, at which the driver stops."""
    is_past = False
    for found in chain.from_iterable(map(ROWS.finditer, parts)):
        if found[1] is not None:
            is_past = is_past or not (found[1].isdigit() and 1 <= int(found[1][:20]) <= MOST_ROWS)
        elif found[2]:
            is_past = False
        elif is_past:
            return True
    return False


def _copy(workbook: str, plain: str) -> None:
    """Copy the workbook, and put its cells after all else; the former ones are not listed any more."""
    shutil.copyfile(workbook, plain)
    with zipfile.ZipFile(workbook) as former, zipfile.ZipFile(plain, "a", zipfile.ZIP_DEFLATED) as book:
        book.filelist = [member for member in book.filelist if member.filename != MEMBER]
        del book.NameToInfo[MEMBER]
        with book.open(MEMBER, "w", force_zip64=True) as file:
            file.writelines(CELL.sub(_as_text, part) for part in _parts(former))


def _as_text(cell: re.Match[bytes]) -> bytes:
    clock = _clock(cell["time"].decode("utf-8", "replace"))
    if clock is None:
        return cell[0]
    said = VALUE.sub(b"", TYPE.sub(rb"\1string", cell["said"]))
    return b"<table:table-cell%b><text:p>%b</text:p></table:table-cell>" % (said, clock.encode())


def _clock(text: str) -> str | None:
    """The hours, minutes and seconds of a time, to the millisecond; None if it is in no notation of ISO 8601."""
    found = NOTATION.fullmatch(text)
    if not found or not any(found[name] for name in ("days", "hours", "minutes", "seconds")):
        return None
    days, hours, minutes = (int(found[name] or 0) for name in ("days", "hours", "minutes"))
    exact = days * A_DAY + hours * AN_HOUR + minutes * A_MINUTE + Decimal((found["seconds"] or "0").replace(",", "."))
    seconds = exact.quantize(MILLISECOND)
    hours, rest = divmod(int(seconds), AN_HOUR)
    fraction = f"{seconds % 1:.3f}".removeprefix("0").rstrip("0").rstrip(".")
    return f"{found['sign']}{hours:02}:{rest // A_MINUTE:02}:{rest % A_MINUTE:02}{fraction}"


if __name__ == "__main__":
    main(*sys.argv[1:3])
