"""Decides which types the columns of a database get, so that its driver reads all values. Runs in the sandbox."""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from service.engine.jailed.declared import (
    BEYOND_32,
    BEYOND_53,
    DEFINED,
    FINER,
    GEOPACKAGE,
    KEYS,
    NO_MOMENT,
    NO_TIME,
    ROW_NUMBERS,
    SQLITE,
    SQLITE_KEYS,
    WITH_ZEROS,
    Declared,
    counted,
    declared_as,
)
from service.engine.jailed.gpkg import named_rows, quoted
from service.engine.jailed.unread_geometries import geometry_columns

TEXT, KEY, HIDDEN = "TEXT", "PRIMARY KEY", 1
"""A type; how a key is declared; how SQLite marks internal columns of virtual tables."""
HIDDEN_NAMES = ("rowid", "_rowid_", "ogc_fid")
"""What the driver of SQLite takes for numbers of rows by its name, also if it is none."""
IS_CUT = f"typeof({{0}}) = 'text' AND {WITH_ZEROS} > 0"
IS_OF = "typeof({{0}}) = '{}'"


class DeclaredColumn(NamedTuple):
    """A column as its table declares it."""

    name: str
    kind: str
    is_geometry: bool


class Values(NamedTuple):
    """How many values of a column are of each kind, beyond 32 and 53 bits, of other types than it declares, and cut."""

    integers: int
    reals: int
    texts: int
    blobs: int
    beyond_32: int
    beyond_53: int
    mistyped: int
    cut: int

    def kind(self, long: str) -> str:
        """The type that holds all of them; `long` is that of integers of 64 bits."""
        if self.texts or (self.blobs and (self.integers or self.reals)) or (self.reals and self.beyond_53):
            return TEXT
        numbers = "REAL" if self.reals else long if self.beyond_32 else "INTEGER"
        return "BLOB" if self.blobs else numbers if self.integers or self.reals else TEXT


class TypedTable(NamedTuple):
    """The columns of a table with the types to give them, none if all may stay; the ids that are left out.

    And by column: how many values are of another type than it declares, how many bytes become texts, and how many texts
    have bytes of zeros, which are left out.
    """

    definition: Mapping[str, str]
    mistyped: Mapping[str, int]
    spelled: Mapping[str, int]
    cut: Mapping[str, int]
    left_out: str = ""
    rounded: Mapping[str, int] = {}
    """By column: how many times have digits beyond milliseconds."""
    unread: Mapping[str, int] = {}
    """By column: how many values are not geometries."""
    second: Mapping[str, int] = {}
    """By column: how many geometries are beside those of the first geometry column."""
    foreign: Mapping[str, int] = {}
    """By column: how many geometries name another coordinate system than their table."""
    clock_times: Sequence[str] = ()
    """The columns that it declares to be times of day, and that are."""


def examine(connection: sqlite3.Connection, table: str, *, is_geopackage: bool) -> TypedTable:
    """Decide on the types of the columns of `table`; a view gets some in any case."""
    rows = [row for row in named_rows(connection, f"PRAGMA table_xinfo({quoted(table)})") if row[-1] != HIDDEN]
    known = GEOPACKAGE if is_geopackage else SQLITE
    geometries = geometry_columns(connection, table, is_geopackage=is_geopackage)
    is_derived = is_view(connection, table)
    key = _numbering(connection, table, rows) if is_derived else _key(rows, is_geopackage=is_geopackage)
    columns = [
        DeclaredColumn(name, "INTEGER" if is_derived and name == key else kind, name.lower() in geometries)
        for _, name, kind, *_ in rows
    ]
    has_own_ids = bool(key) and _has_own_ids(connection, table, key)
    is_left_out = has_own_ids and key.lower() in ROW_NUMBERS
    is_kept = has_own_ids and not is_left_out
    data = [column for column in columns if not column.is_geometry and (column.name != key or is_kept)]
    changed = _changed(connection, table, data, is_geopackage=is_geopackage)
    is_hidden = not is_geopackage and any(column.name.lower() in HIDDEN_NAMES for column in data)
    left_out = key if is_left_out else ""
    times = [
        column.name
        for column in data
        if column.name not in changed and declared_as(column.kind, known).mistyped in {NO_MOMENT, NO_TIME}
    ]
    finer = counted(connection, table, [(name, FINER) for name in times])
    rounded = {name: count for name, count in finer if count}
    clock_times = [column.name for column in data if declared_as(column.kind, known).mistyped == NO_TIME]
    if not changed and not is_kept and not is_hidden and not is_derived:
        return TypedTable({}, {}, {}, {}, left_out, rounded, clock_times=clock_times)
    changed |= {column.name for column in data if not declared_as(column.kind, known).is_plain or column.name == key}
    values = _values(connection, table, [column for column in data if column.name in changed], known)
    kinds = {name: found.kind("INTEGER" if is_geopackage else "BIGINT") for name, found in values.items()}
    definition = {column.name: _definition(column, kinds, "" if is_kept else key) for column in columns}
    texts = {name: found for name, found in values.items() if kinds[name] == TEXT}
    mistyped = {name: found.mistyped for name, found in texts.items() if found.mistyped}
    return TypedTable(
        definition,
        mistyped,
        {name: found.blobs for name, found in texts.items() if found.blobs},
        {name: found.cut for name, found in texts.items() if found.cut},
        left_out,
        rounded,
        clock_times=[name for name in clock_times if name not in mistyped],
    )


def is_view(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a table of the database that was opened, not of one attached to it, is a view."""
    query = "SELECT 1 FROM main.sqlite_master WHERE type = 'view' AND name = ?"
    return connection.execute(query, (table,)).fetchone() is not None


def _numbering(connection: sqlite3.Connection, view: str, rows: Sequence[tuple[object, ...]]) -> str:
    """The column of a view, which has no key, that a program takes for numbers of its rows; "" if there is none."""
    names = [str(name) for _, name, *_ in rows if str(name).lower() in ROW_NUMBERS]
    for name in names:
        numbers = f"count(DISTINCT {quoted(name)}) = count(*) AND total(typeof({quoted(name)}) <> 'integer') = 0"
        if connection.execute(f"SELECT {numbers} FROM {quoted(view)}").fetchone()[0]:  # noqa: S608 -- quoted
            return name
    return ""


def _has_own_ids(connection: sqlite3.Connection, table: str, key: str) -> bool:
    """Whether the ids in the column `key` are others than 1, 2, 3 and so on, or the same from 0."""
    query = f"SELECT min({quoted(key)}), max({quoted(key)}), count(*) FROM {quoted(table)}"  # noqa: S608 -- quoted
    least, most, count = connection.execute(query).fetchone()
    return bool(count) and (least, most) not in {(0, count - 1), (1, count)}


def _key(rows: Sequence[tuple[object, ...]], *, is_geopackage: bool) -> str:
    """The column that the driver takes for ids of features; "" if there is none."""
    keys = [(str(name), str(kind).upper()) for _, name, kind, _, _, place, _ in rows if place]
    kinds = KEYS if is_geopackage else SQLITE_KEYS
    return keys[0][0] if len(keys) == 1 and keys[0][1] in kinds else ""


def _changed(
    connection: sqlite3.Connection, table: str, columns: Sequence[DeclaredColumn], *, is_geopackage: bool
) -> set[str]:
    """The columns whose values the driver would change."""
    known = GEOPACKAGE if is_geopackage else SQLITE
    undefined = {column.name for column in columns if is_geopackage and not DEFINED.fullmatch(column.kind)}
    conditions = [(column.name, declared_as(column.kind, known).lost) for column in columns]
    counts = counted(connection, table, [pair for pair in conditions if pair[0] not in undefined])
    return undefined | {name for name, count in counts if count}


def _values(
    connection: sqlite3.Connection, table: str, columns: Sequence[DeclaredColumn], known: Sequence[Declared]
) -> dict[str, Values]:
    kinds = [IS_OF.format(kind) for kind in ("integer", "real", "text", "blob")]
    wanted = [
        (column.name, condition)
        for column in columns
        for condition in (*kinds, BEYOND_32, BEYOND_53, declared_as(column.kind, known).mistyped, IS_CUT)
    ]
    numbers = [count for _, count in counted(connection, table, wanted)]
    width = len(Values._fields)
    return {column.name: Values(*numbers[place * width : (place + 1) * width]) for place, column in enumerate(columns)}


def _definition(column: DeclaredColumn, kinds: Mapping[str, str], key: str) -> str:
    """What the copy declares of a column: one of our types, or one without anything that SQL could take for more."""
    if column.is_geometry:
        return "BLOB"
    if column.name == key:
        return f"{column.kind} {KEY}"
    return kinds.get(column.name, column.kind)
