"""Recognizes dates and times in texts as the converter does when it types columns.

Versions of the converter differ: before 3.7 a month may have one digit; later ones also take `T1234` and `23:593` for
times. Texts that they read differently count as moments of which only the beginning is kept, so all remain texts. So do
days that no calendar has, such as 2021-02-29, which programs that read a result take for others.
"""

import re
from calendar import isleap
from enum import Enum

from service.formats.facts import FieldType

_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d"
_MOMENT = re.compile(
    r"\d{4}[-/](?:(?:0[1-9]|1[0-2])[-/](?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])[-/](?:29|30)"
    r"|(?:0[13578]|1[02])[-/]31|02[-/](?P<leap>29))"
    rf"([T ]{_CLOCK}(?::[0-5]\d(?:\.\d{{1,3}}(?P<fine>\d*))?)?(?:Z|[+-]\d\d(?::?(?:00|15|30|45))?)?)?"
    rf"|({_CLOCK}:[0-5]\d(?:\.\d{{1,3}}(?P<finer>\d*))?)",
    re.ASCII,
)
_MOMENT_TYPES = {None: FieldType.DATE, 1: FieldType.DATE, 2: FieldType.DATETIME, 4: FieldType.TIME}
"""By the last group of the pattern that matched."""
_ROUNDED_UP = re.compile(r":59\.999[5-9]")
_DATE = re.compile(r" *(-\d{0,6}|\d{1,6})[-/](\d{1,6})[-/](\d{1,6})", re.ASCII)
_TIME = re.compile(r" *(\d{1,6}+):(\d{1,6}+)(?::(\d{1,6})|(?!:))", re.ASCII)
_NEWER_TIME = re.compile(r" *(?:T *\d\d:?|\d\d:)\d\d[^-/]*+\Z", re.ASCII | re.DOTALL)
_NEWER_AFTER_DATE = re.compile(r" *-?\d*[-/]\d\d[-/]\d\d[T ] *T?\d\d:?\d\d", re.ASCII)
"""What later versions take for the beginning of a time, or nearly so: the limits of its numbers are left out."""
_LEAST_YEAR, _LAST_YEAR = -32768, 32767


class Fidelity(Enum):
    """How much of a text survives when it is read as a date or a time."""

    WHOLE = "whole"
    ROUNDED = "rounded"
    """Everything except fractions of a millisecond."""
    ROUNDED_UP = "rounded up"
    """The same, which makes it the next minute."""
    BEGINNING = "beginning"
    """Only its beginning, or a different spelling of the same moment."""


def read_moment(text: str) -> tuple[FieldType, Fidelity]:
    """The type of column that `text` alone requires, and how much of the text such a column keeps.

    The type is DATE, TIME or DATETIME, otherwise TEXT. Only the beginning of a text decides: what follows a time is
    ignored.
    """
    moment = _MOMENT.fullmatch(text)
    if moment and not (moment["leap"] and not isleap(int(text[:4]))):
        finer = (moment["fine"] or moment["finer"] or "").strip("0")
        rounded = Fidelity.ROUNDED_UP if _ROUNDED_UP.search(text) else Fidelity.ROUNDED
        return _MOMENT_TYPES[moment.lastindex], rounded if finer else Fidelity.WHOLE
    column = _moment_type(text)
    if column is FieldType.TEXT:
        column = _newer_type(text)
    return column, Fidelity.WHOLE if column is FieldType.TEXT else Fidelity.BEGINNING


def _moment_type(text: str) -> FieldType:
    has_time = ":" in text
    if "-" not in text and "/" not in text:
        return FieldType.TIME if has_time and _is_time(text) else FieldType.TEXT
    date = _DATE.match(text)
    if not date or not _is_date(*date.groups()):
        return FieldType.TEXT
    rest = text[date.end() :]
    if rest and not rest.startswith("Z") and not (rest[0] in " T" and _is_time_or_nothing(rest[1:])):
        return FieldType.TEXT
    return FieldType.DATETIME if has_time else FieldType.DATE


def _newer_type(text: str) -> FieldType:
    if _NEWER_AFTER_DATE.match(text):
        return FieldType.DATETIME if ":" in text else FieldType.DATE
    return FieldType.TIME if _NEWER_TIME.match(text) else FieldType.TEXT


def _is_date(year: str, month: str, day: str) -> bool:
    has_year = year == "-" or _LEAST_YEAR <= int(year) <= _LAST_YEAR
    return has_year and 1 <= int(month) <= 12 and 1 <= int(day) <= 31  # noqa: PLR2004 - calendar


def _is_time_or_nothing(rest: str) -> bool:
    return not rest.strip(" ") or _is_time(rest)


def _is_time(text: str) -> bool:
    time = _TIME.match(text)
    if not time:
        return False
    hour, minute, second = (int(part or 0) for part in time.groups())
    return hour <= 23 and minute <= 59 and second <= 60  # noqa: PLR2004 - clock, with leap seconds
