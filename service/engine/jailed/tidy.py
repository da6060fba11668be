"""Restores the columns of the file from those that its driver reports. Runs in the sandbox.

Drivers add columns that the file does not fill, put prefixes before names and, in formats without types, guess from the
first values, so that 00501 becomes a number. One rewrite of the table corrects all of it.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from service.engine.jailed.gpkg import FID, GEOMETRY, columns, has_geometry, quoted
from service.engine.jailed.kinds import Kind, is_in_calendar, loses_digits

ROW_NUMBER = "#"
"""The end of a usual value that stands for the number of its row, from 0 or from 1 on."""
NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:[eE][-+]?\d+)?\Z", re.ASCII)
DATE = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
DATETIME = re.compile(r"\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,3}0*)?Z?\Z", re.ASCII)
"""A time that is kept whole: to the millisecond."""
TRUE, FALSE, NEITHER = "TtYy", "FfNn", "?"
"""How logical columns of a .dbf say so; an empty text says neither, too."""
NUMBERS = ("INT", "MEDIUMINT", "REAL", "DOUBLE", "FLOAT")


@dataclass(frozen=True, slots=True)
class Tidying:
    """What is known about the columns that a driver reports."""

    noise: Mapping[str, Sequence[str]]
    prefix: str
    guesses_types: bool
    numbers: Sequence[str] = ()
    has_other_texts: bool = False
    """Whether the driver found texts that are not UTF-8."""
    absent_measures: bool = False
    """Whether measures below -1e38 stand for none."""
    logical: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By table: the positions of the columns whose texts stand for true, false and neither."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What layers are called in the upload, by their tables, where that differs."""
    clock_times: Sequence[str] = ()
    """The columns whose texts are times of day, as the driver has written them."""


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    new_name: str
    type: str
    value: str


def tidy(connection: sqlite3.Connection, table: str, tidying: Tidying) -> list[str]:
    """Drop, rename and retype the columns of `table` as `tidying` says.

    Returns the columns that the driver took for numbers because of their values, and whose original text is lost.
    """
    found = columns(connection, table)
    taken = {name.casefold() for name, _ in found}
    kept = []
    logical = tidying.logical.get(table, ())
    for place, (name, declared) in enumerate(found):
        if _is_noise(connection, table, name, tidying):
            continue
        if place in logical and declared.startswith("TEXT") and _is_logical(connection, table, name):
            kept.append(_Column(name, name, "BOOLEAN", _in(name, TRUE)))
            continue
        kept.append(_column(connection, table, (name, declared), tidying, taken))
    if [(column.new_name, column.type) for column in kept] != found:
        _rewrite(connection, table, kept)
    numbers = [column for column in kept if column.type.startswith(NUMBERS)] if tidying.numbers else []
    return [column.new_name for column in numbers if column.name not in tidying.numbers]


def _column(
    connection: sqlite3.Connection, table: str, shown: tuple[str, str], tidying: Tidying, taken: set[str]
) -> _Column:
    name, declared = shown
    bare = name.removeprefix(tidying.prefix) if tidying.prefix else name
    new_name = bare if bare and bare.casefold() not in taken else name
    taken.add(new_name.casefold())
    if tidying.guesses_types and declared.startswith("TEXT"):
        for kind, value, fits in _TYPES:
            if fits(connection, table, name):
                return _Column(name, new_name, kind, value.format(quoted(name)))
    return _Column(name, new_name, declared, quoted(name))


def _is_noise(connection: sqlite3.Connection, table: str, name: str, tidying: Tidying) -> bool:
    usual = tidying.noise.get(name, tidying.noise.get("*"))
    if usual is None:
        return False
    values = [value.replace("{layer}", tidying.names.get(table, table)) for value in usual]
    numbered = {value: value.removesuffix(ROW_NUMBER) for value in values if value.endswith(ROW_NUMBER)}
    if any(_number_rows(connection, table, name, start) for start in numbered.values()):
        return True
    exact = ["", *(value for value in values if not value.endswith("*") and value not in numbered)]
    begins = [value.removesuffix("*") for value in values if value.endswith("*")]
    column = quoted(name)
    conditions = [f"{column} NOT IN ({', '.join('?' * len(exact))})"]
    conditions += [f"substr({column}, 1, ?) <> ?"] * len(begins)
    arguments = [*exact, *(argument for start in begins for argument in (len(start), start))]
    query = f"SELECT 1 FROM {quoted(table)} WHERE {' AND '.join(conditions)} LIMIT 1"  # noqa: S608 -- quoted
    return connection.execute(query, arguments).fetchone() is None


def _is_logical(connection: sqlite3.Connection, table: str, name: str) -> bool:
    query = f"SELECT 1 FROM {quoted(table)} WHERE NOT {_in(name, TRUE + FALSE)} LIMIT 1"  # noqa: S608 -- quoted
    return connection.execute(query).fetchone() is None


def _in(name: str, letters: str) -> str:
    listed = ", ".join(f"'{letter}'" for letter in letters)
    return f"(nullif(nullif({quoted(name)}, ''), '{NEITHER}') IN ({listed}))"


def _number_rows(connection: sqlite3.Connection, table: str, name: str, start: str) -> bool:
    """Whether all values of a column are `start` and the number of their row, from 0 or from 1 on."""
    rows = f"SELECT {quoted(name)} AS id, row_number() OVER (ORDER BY {FID}) AS number FROM {quoted(table)}"  # noqa: S608 -- quoted
    others = f"SELECT 1 FROM ({rows}) WHERE id <> ? || (number - ?) LIMIT 1"  # noqa: S608 -- quoted
    return any(connection.execute(others, (start, least)).fetchone() is None for least in (1, 0))


def _none_where(condition: str) -> Callable[[sqlite3.Connection, str, str], bool]:
    """A test that a column is filled and that none of its values meets `condition`."""

    def fits(connection: sqlite3.Connection, table: str, name: str) -> bool:
        filled = f"SELECT 1 FROM {quoted(table)} WHERE {quoted(name)} IS NOT NULL"  # noqa: S608 -- quoted
        against = f"{filled} AND ({condition.format(quoted(name))}) LIMIT 1"
        return (
            connection.execute(f"{filled} LIMIT 1").fetchone() is not None
            and connection.execute(against).fetchone() is None
        )

    return fits


def _all_match(
    pattern: re.Pattern[str], is_kept: Callable[[str], bool]
) -> Callable[[sqlite3.Connection, str, str], bool]:
    def fits(connection: sqlite3.Connection, table: str, name: str) -> bool:
        connection.create_function("fits", 1, lambda value: bool(pattern.match(str(value))) and is_kept(str(value)))
        return _none_where("NOT fits({0})")(connection, table, name)

    return fits


def _is_kept(number: str) -> bool:
    """Whether a floating-point number has all digits of `number`."""
    is_whole = number.removeprefix("-").isdigit()
    return int(number) == int(float(number)) if is_whole else not loses_digits(number, Kind.POINT)


_TYPES: tuple[tuple[str, str, Callable[[sqlite3.Connection, str, str], bool]], ...] = (
    ("BOOLEAN", "{0} = 'true'", _none_where("{0} NOT IN ('true', 'false')")),
    ("INTEGER", "CAST({0} AS INTEGER)", _none_where("{0} <> CAST(CAST({0} AS INTEGER) AS TEXT)")),
    ("REAL", "CAST({0} AS REAL)", _all_match(NUMBER, _is_kept)),
    ("DATE", "{0}", _all_match(DATE, is_in_calendar)),
    ("DATETIME", "{0}", _all_match(DATETIME, is_in_calendar)),
)


def _rewrite(connection: sqlite3.Connection, table: str, kept: Sequence[_Column]) -> None:
    """Replace `table` by a new table with the columns `kept`: one pass, however many columns change."""
    own = [f"{quoted(FID)} INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL"]
    copied = [quoted(FID)]
    if has_geometry(connection, table):
        own.append(f"{quoted(GEOMETRY)} GEOMETRY")
        copied.append(quoted(GEOMETRY))
    definition = ", ".join([*own, *(f"{quoted(column.new_name)} {column.type}" for column in kept)])
    values = ", ".join([*copied, *(column.value for column in kept)])
    connection.execute("BEGIN")
    connection.execute("PRAGMA legacy_alter_table = ON")
    connection.execute(f'CREATE TABLE "__new" ({definition})')
    connection.execute(f'INSERT INTO "__new" SELECT {values} FROM {quoted(table)}')  # noqa: S608 -- quoted
    connection.execute(f"DROP TABLE {quoted(table)}")
    connection.execute(f'ALTER TABLE "__new" RENAME TO {quoted(table)}')
    connection.execute("COMMIT")
