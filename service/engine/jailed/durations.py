"""Makes texts of times, dates before the year 0 and odd numbers in cells of an ODS workbook. Runs in the sandbox.

The driver knows one notation, PT10H30M00S: it cuts fractions of seconds, takes 100 hours for 1, and makes nothing of
others, such as PT010H30M00S, which Gnumeric writes, and 10:30:00. Beside texts it leaves times in that notation. Of
dates before the year 0 and beyond the year 9999, and in other notations, it makes nothing, and it cuts seconds at a
comma. It takes numbers that are empty or none for 0, and 1,5 for 1. For `opendocument`; uses only the standard library.
"""

import re
from decimal import Decimal

TIME = "time-value"
"""What every cell with a time holds."""
CELL = (
    rb"""<table:table-cell\b(?P<said>(?>[^<>]*?\boffice:%b\s*+=\s*+["'](?P<value>%b[^"'<>]*+)["'])"""
    rb"""(?:[^<>/]++|/(?!>))*+)"""
    rb"""(?:/>|>(?:[^<]++|<(?!/?table:table-cell\b))*+</table:table-cell\s*+>)"""
)
"""A cell with a value, and its text, which may say less. No look goes beyond the next cell, or back to others."""
PLAIN_DATE = rb"""\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,3}0*+)?+)?+["']"""
TIME_CELL = re.compile(CELL % (b"time-value", b""))
DATE_CELL = re.compile(CELL % (b"date-value", rb"(?!" + PLAIN_DATE + rb")"))
PLAIN_NUMBER = rb"""(?:-?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+|[-+]?+(?i:inf|nan))["']"""
NUMBER_CELL = re.compile(CELL % (b"value", rb"(?!" + PLAIN_NUMBER + rb")"))
SHOWN = re.compile(rb"<text:p\b[^<>]*+(?<!/)>(?!</text:p)")
"""What a cell shows, unless that is empty."""
READ_DATE = re.compile(rb"\d{4}-\d")
"""How the dates begin that the driver reads: years have four digits."""
COMMA = re.compile(rb"(?<=\d\d:\d\d:\d\d),(?=\d)")
TYPE = re.compile(rb"""(\boffice:value-type\s*+=\s*+["'])\w++""")
VALUE = re.compile(rb"""\s*+\boffice:(?:time-|date-)?+value\s*+=\s*+["'][^"']*+["']""")
NOTATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d{1,9})D)?(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?"
    r"(?:(?P<seconds>\d{1,9}(?:[.,]\d{1,20})?)S)?)?",
    re.ASCII,
)
A_DAY, AN_HOUR, A_MINUTE = 86400, 3600, 60
MILLISECOND = Decimal("0.001")
ROUNDING = Decimal("0.000001")
"""How far programs that calculate with days are from the milliseconds that they mean."""


def times_as_texts(part: bytes) -> bytes:
    """Cells with the times in them as texts, such as 10:30:00, and with dates such as -0044-03-15 and 15.03.2024.

    Other dates get a point before fractions of seconds.
    """
    return DATE_CELL.sub(_with_date, TIME_CELL.sub(_with_clock, part))


def odd_numbers_as_texts(part: bytes) -> bytes:
    """Cells with values that are no numbers as texts of what they show, or else of the value."""
    return NUMBER_CELL.sub(_as_shown, part)


def is_finer(fraction: bytes) -> bool:
    """Whether the digits of a fraction of a second say more than milliseconds."""
    exact = Decimal(f"0.{fraction.decode()}")
    return abs(exact - exact.quantize(MILLISECOND)) > ROUNDING


def _with_date(cell: re.Match[bytes]) -> bytes:
    if not READ_DATE.match(cell["value"]):
        return _with_text(cell, cell["value"])
    return cell[0].replace(cell["value"], COMMA.sub(b".", cell["value"]), 1)


def _with_clock(cell: re.Match[bytes]) -> bytes:
    clock = _clock(cell["value"].decode("utf-8", "replace"))
    return _with_text(cell, cell["value"] if clock is None else clock.encode())


def _with_text(cell: re.Match[bytes], text: bytes) -> bytes:
    return b"<table:table-cell%b><text:p>%b</text:p></table:table-cell>" % (_of_text(cell["said"]), text)


def _as_shown(cell: re.Match[bytes]) -> bytes:
    shows = SHOWN.search(cell[0])
    return cell[0].replace(cell["said"], _of_text(cell["said"]), 1) if shows else _with_text(cell, cell["value"])


def _of_text(said: bytes) -> bytes:
    """What the start tag of a cell says, if it is one of a text."""
    return VALUE.sub(b"", TYPE.sub(rb"\1string", said))


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
