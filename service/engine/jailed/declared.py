"""The types that columns of databases declare: what their drivers make of them, and which values these do not hold.

SQLite stores any value in any column. The conditions count values that a driver would change.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from service.engine.jailed.gpkg import quoted

EXPRESSIONS_A_QUERY = 500
COLUMNS_A_CALL = 99
"""Of a function with one more argument: older releases of SQLite allow 100."""
DEFINED = re.compile(
    r"BOOLEAN|(TINY|SMALL|MEDIUM)?INT|INTEGER|FLOAT|DOUBLE|REAL|DATE|DATETIME|(TEXT|BLOB)(\(\d+\))?",
    re.IGNORECASE | re.ASCII,
)
"""The types that GeoPackage defines for columns of attributes."""

KEYS = frozenset({"INTEGER", "INT", "TINYINT", "SMALLINT", "MEDIUMINT"})
"""The types of keys that the driver of GeoPackage does not read as columns."""
SQLITE_KEYS = frozenset({"INTEGER"})
"""The same of SQLite."""
ROW_NUMBERS = ("fid", "ogc_fid")
"""The names that programs give to keys which only number rows, also once rows were deleted."""
BINARY = "+{0} COLLATE BINARY >= x''"
"""Faster than `typeof`: bytes are greater than texts, and these than numbers. The plus keeps the value as it is."""
NO_INTEGER, NO_NUMBER = "typeof({0}) IN ('real', 'text')", f"+{{0}} COLLATE BINARY >= '' AND NOT {BINARY}"
VALUE = "typeof({0}) NOT IN ('null', 'blob')"
DAY = "replace(substr({0}, 1, 10), '/', '-')"
NO_DAY_OF_A_MONTH = (
    "{0} NOT GLOB '[0-9][0-9][0-9][0-9][-/][0-9][0-9][-/][0-9][0-9]*' OR (substr({0}, 9, 2) NOT BETWEEN '01' AND '28' "
    f"OR substr({{0}}, 6, 2) NOT BETWEEN '01' AND '12') AND date({DAY}, '+0 days') IS NOT {DAY}"
)
"""Most days need no calendar, which takes three times as long, and which SQLite asks only to count days."""
NO_DATE = f"{VALUE} AND ({NO_DAY_OF_A_MONTH} OR substr({{0}}, 11) GLOB '*[^T0:.+Z -]*')"
"""The driver keeps only the date of a date with a time."""
_MILLISECONDS, _OFFSET = ".[0-9][0-9][0-9]", "[+-]??:??"
_ENDS = {19: "", 20: "Z", 25: _OFFSET, 23: _MILLISECONDS, 24: f"{_MILLISECONDS}Z", 29: f"{_MILLISECONDS}{_OFFSET}"}
"""What may follow the seconds of a moment, by the length of the whole."""
_WRITTEN = " ".join(f"WHEN {length} THEN {{0}} GLOB '????-??-??[T ]??:??:??{end}'" for length, end in _ENDS.items())
USUAL_MOMENT = (
    f"CASE length({{0}}) {_WRITTEN} ELSE 0 END AND datetime({{0}}) NOT NULL AND substr({{0}}, 9, 2) < '29' "
    "AND substr({0}, 12, 2) < '24'"
)
"""A moment as most databases write it, which takes a third of the time to know."""
NO_MOMENT = (
    f"NOT ({USUAL_MOMENT}) AND {VALUE} AND ({NO_DAY_OF_A_MONTH} "
    "OR substr({0}, 11) NOT GLOB '[T ][0-2][0-9]:[0-5][0-9]*' AND {0} NOT GLOB '??????????' "
    "OR substr({0}, 12, 2) > '23' OR substr({0}, 18, 2) BETWEEN '61' AND '99' "
    "OR substr({0}, 17) GLOB '*[^0-9:.+Z -]*')"
)
"""A zone in words, or PM, would be left out."""
NO_TIME = (
    f"{VALUE} AND ({{0}} NOT GLOB '[01][0-9]:[0-5][0-9]*' AND {{0}} NOT GLOB '2[0-3]:[0-5][0-9]*' "
    "OR substr({0}, 7, 2) BETWEEN '61' AND '99' OR {0} GLOB '*[^0-9:.]*')"
)
NO_TRUTH = "{0} NOT IN (0, 1) AND typeof({0}) <> 'blob'"
BEYOND_16 = "({0} NOT BETWEEN -32768 AND 32767 AND typeof({0}) = 'integer')"
BEYOND_32 = "({0} NOT BETWEEN -2147483648 AND 2147483647 AND typeof({0}) = 'integer')"
BEYOND_53 = "({0} NOT BETWEEN -9007199254740992 AND 9007199254740992 AND typeof({0}) = 'integer')"
BEYOND_SINGLE = (
    "(typeof({0}) = 'real' AND (abs({0}) > 3.4028234663852886e38 "
    "OR {0} * 536870913.0 - ({0} * 536870913.0 - {0}) <> {0}))"
)
"""A number that single precision changes: too large, or not what its first 24 bits are, which the multiple keeps."""
FINER = "{0} GLOB '*.[0-9][0-9][0-9][0-9]*' AND ltrim(substr({0}, instr({0}, '.') + 4), '0') GLOB '[1-9]*'"
"""Of a time with more digits than milliseconds, these are what the work file rounds."""
WITH_ZEROS = "instr({0}, char(0))"
"""Drivers keep only the part of a text before its first zero byte. Counts others than texts as having none."""
FIRST = "(SELECT typeof({0}) FROM {1} LIMIT 1)"
NEVER = "0"


class Declared(NamedTuple):
    """A pattern of declared types, and conditions: that a value is of another type, and that it is too large."""

    pattern: str
    mistyped: str = NEVER
    large: str = NEVER
    holds_bytes: bool = False
    cut: str = NEVER
    """The condition that the driver cuts a text."""
    usual: str = ""
    """The letter with which `are_usual` (usual_values.c) knows values of which the driver changes none."""
    is_plain: bool = True
    """Whether the driver knows the type without looking at values, and all of the type is known here."""

    @property
    def lost(self) -> str:
        """The condition that the driver changes a value."""
        parts = [self.mistyped, self.large, self.cut, *(() if self.holds_bytes else (BINARY,))]
        return " OR ".join(f"({part})" for part in parts if part != NEVER) or NEVER


SHORT, SINGLE = "SMALLINT", "FLOAT"
"""The types of a GeoPackage of which drivers keep fewer bits than a column of SQLite holds."""
SHORT_IN_SQLITE = "INTEGER_INT16"
"""That of SQLite, as GDAL calls it."""
_INTEGERS = "(TINY|SMALL|MEDIUM)?INT|INTEGER|INT2"
SQLITE = (
    Declared(r"JSON(INTEGER|INTEGER64|REAL|STRING)LIST|(VARCHAR|BLOB)(\(\d+\))?_DEFLATE", holds_bytes=True),
    Declared(r"BLOB", VALUE, holds_bytes=True, usual="x"),
    Declared(r"TEXT(\(\d+\))?|CLOB|N?(VAR)?CHAR(ACTER)?(\(\d+\))?", cut=WITH_ZEROS, usual="t"),
    Declared("BOOLEAN|INTEGER_BOOLEAN", NO_TRUTH, usual="b"),
    Declared(SHORT_IN_SQLITE, NO_INTEGER, BEYOND_16),
    Declared(_INTEGERS, NO_INTEGER, BEYOND_32),
    Declared("INTEGER.*", NO_INTEGER, BEYOND_32, is_plain=False),
    Declared("BIGINT|UNSIGNED BIG INT|INT8", NO_INTEGER, usual="l"),
    Declared("REAL|FLOAT|DOUBLE|DOUBLE PRECISION", NO_NUMBER),
    Declared("NUMERIC|DECIMAL", NO_NUMBER, BEYOND_53, usual="r"),
    Declared("TIME", NO_TIME),
    Declared("DATE", NO_DATE, usual="d"),
    Declared("DATETIME|TIMESTAMP", NO_MOMENT, usual="m"),
    Declared(
        ".*",
        f"CASE {FIRST} WHEN 'integer' THEN {NO_INTEGER} WHEN 'real' THEN {NO_NUMBER} WHEN 'blob' THEN {VALUE} END",
        f"CASE {FIRST} WHEN 'integer' THEN {BEYOND_32} OR {BINARY} WHEN 'real' THEN {BEYOND_53} OR {BINARY} "
        f"WHEN 'blob' THEN 0 ELSE {BINARY} END",
        holds_bytes=True,
        cut=f"CASE WHEN {FIRST} = 'text' THEN {WITH_ZEROS} END",
        is_plain=False,
    ),
)
"""For types that the driver does not know, such as INTERVAL or INT(11), it takes the type of the first value."""
GEOPACKAGE = (
    Declared("BOOLEAN", NO_TRUTH, usual="b"),
    Declared(SHORT, NO_INTEGER, BEYOND_16),
    Declared("(TINY|MEDIUM)INT", NO_INTEGER, BEYOND_32),
    Declared("INT|INTEGER", NO_INTEGER),
    Declared(SINGLE, NO_NUMBER, BEYOND_SINGLE),
    Declared("DOUBLE|REAL", NO_NUMBER, usual="r"),
    Declared("DATE", NO_DATE, usual="d"),
    Declared("DATETIME", NO_MOMENT, usual="m"),
    Declared(r"TEXT(\(\d+\))?", cut=WITH_ZEROS, usual="t"),
    Declared(r"BLOB(\(\d+\))?", VALUE, holds_bytes=True, usual="x"),
    *SQLITE,
)
"""The types that GeoPackage defines; its driver takes columns of others for geometries."""


@cache
def declared_as(kind: str, table: Sequence[Declared]) -> Declared:
    """The row of `table`, whose last one is for all types, for a column that declares `kind` (also with line ends)."""
    return next(row for row in table if re.fullmatch(row.pattern, kind, re.IGNORECASE | re.ASCII | re.DOTALL))


def counting(table: str, conditions: Sequence[tuple[str, str]]) -> str:
    """The query for how often each condition holds for the column beside it, an error if there is no such column."""
    place = quoted(table)
    sums = ", ".join(f"total({condition.format(f'{place}.{quoted(name)}', place)})" for name, condition in conditions)
    return f"SELECT {sums} FROM {place}"  # noqa: S608 -- quoted


class Condition(NamedTuple):
    """A condition on the values of a column, and the kind of values (`Declared.usual`) for which it never holds."""

    column: str
    text: str
    usual: str = ""


def finding(table: str, conditions: Sequence[Condition]) -> str:
    """The query for whether any condition holds for any value: half the time of counting, less if values are usual."""
    place = quoted(table)
    known = [condition for condition in conditions if condition.usual]
    parts = [known[start : start + COLUMNS_A_CALL] for start in range(0, len(known), COLUMNS_A_CALL)]
    alternatives = [f"NOT {_are_usual(place, part)} AND ({_any_of(place, part)})" for part in parts]
    others = [condition for condition in conditions if not condition.usual]
    alternatives += [_any_of(place, others)] if others else []
    return f"SELECT EXISTS (SELECT 1 FROM {place} WHERE {' OR '.join(alternatives) or NEVER})"  # noqa: S608 -- quoted


def _are_usual(place: str, conditions: Sequence[Condition]) -> str:
    kinds = "".join(condition.usual for condition in conditions)
    return f"are_usual('{kinds}', {', '.join(f'{place}.{quoted(condition.column)}' for condition in conditions)})"


def _any_of(place: str, conditions: Sequence[Condition]) -> str:
    return " OR ".join(f"({text.format(f'{place}.{quoted(column)}', place)})" for column, text, _ in conditions)


def counted(
    connection: sqlite3.Connection, table: str, conditions: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, int]]:
    """For each name of a column and condition: the name, and how often the condition holds."""
    for start in range(0, len(conditions), EXPRESSIONS_A_QUERY):
        part = conditions[start : start + EXPRESSIONS_A_QUERY]
        row = connection.execute(counting(table, part)).fetchone()
        yield from ((name, int(count)) for (name, _), count in zip(part, row, strict=True))
