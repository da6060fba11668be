"""Gives columns of a database types that its driver reads.

Runs in the sandbox. A driver makes 0 of a text in a column of
integers, and cuts integers that exceed the type of the first one. The driver of GeoPackage takes a column of a type
that the standard does not define, such as VARCHAR(80), for a geometry and leaves it out. Neither reads the key of a
table as a column, nor does that of SQLite a column of such a name. Both cut texts at a byte of zeros.
"""

import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.jailed.database import data_tables, layers
from service.engine.jailed.declared import WITH_ZEROS
from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, open_work_file, quoted, text_of
from service.engine.jailed.self_description import RULES, VIEWS, Beside, lists_all, says_of_itself
from service.engine.jailed.table_types import HIDDEN_NAMES, KEY, TEXT, TypedTable, examine, is_view
from service.engine.jailed.unread_geometries import left_out
from service.formats.facts import MAX_COLUMNS, Count, Name

GEOPACKAGE = "geopackage"
COUNTED = ("mistyped", "spelled", "cut", "rounded", "unread", "second", "foreign")
NOT_DATA = ("gpkg_", "rtree_", "sqlite_")
GEOMETRY_COLUMNS = """
    CREATE TABLE IF NOT EXISTS gpkg_geometry_columns (
        table_name TEXT NOT NULL PRIMARY KEY, column_name TEXT NOT NULL, geometry_type_name TEXT NOT NULL,
        srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL
    )
"""
"""Adds what a GeoPackage may lack if none of its tables has geometries, although its driver then reads none of them."""
CONTENTS = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid"

TableNames = Annotated[tuple[Name, ...], Meta(max_length=MAX_LAYERS)]
ColumnNames = Annotated[tuple[Name, ...], Meta(max_length=MAX_COLUMNS)]
Counts = Annotated[Mapping[Name, Count], Meta(max_length=MAX_COLUMNS * MAX_LAYERS)]


class ExaminedDatabase(msgspec.Struct, frozen=True):
    """The tables of a database that hold data, and what is told of its columns."""

    tables: TableNames
    mistyped: Counts
    """By column: how many values are of another type than it declares, and became texts with all others."""
    spelled: Counts
    """By column: how many binary values beside others became texts."""
    cut: Counts
    """By column: how many texts had bytes of zeros, which were left out."""
    rounded: Counts
    """By column: how many times have digits beyond milliseconds."""
    beside: Beside
    """What it holds beside its layers."""
    rules: Count
    """How many rules its tables have for the values of their columns."""
    left_out: TableNames
    """Keys that only number rows, although with gaps."""
    clock_times: Annotated[Mapping[Name, ColumnNames], Meta(max_length=MAX_LAYERS)]
    """By table: the columns with times of day and nothing else."""
    derived: TableNames
    """Views and virtual tables."""
    unknown: TableNames
    """Layers that are views with functions that SQLite alone does not have."""
    unread: Counts
    """By geometry column: how many values are not geometries."""
    second: Counts
    """By further geometry column: how many geometries it has."""
    foreign: Counts
    """By geometry column: how many geometries name another system than their table."""


def main(database: str, copy: str, kind: str = "", prefix: str = "") -> ExaminedDatabase:
    """Write `database` to `copy` with types that hold all values; nothing if it declares only such.

    If `kind` is "geopackage", its tables are its layers; else the copy has `prefix` before names of columns that the
    driver does not read.
    """
    is_geopackage = kind == GEOPACKAGE
    try:
        is_complete = not is_geopackage or _lists_geometries(database)
        if not is_complete:
            _copy(database, copy, {}, prefix, is_geopackage=True)
        found, definitions = _examine(database if is_complete else copy, is_geopackage=is_geopackage)
    except UnicodeDecodeError:  # of the message of an error, which quotes the damaged schema
        sys.exit(Exit.DAMAGED)
    if definitions:
        _copy(database, copy, definitions, prefix, is_geopackage=is_geopackage)
    return found


def _lists_geometries(database: str) -> bool:
    """Whether a GeoPackage has the table that lists geometries; also if that cannot be read."""
    query = "SELECT count(*) FROM sqlite_master WHERE lower(name) = 'gpkg_geometry_columns'"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        try:
            return bool(connection.execute(query).fetchone()[0])
        except sqlite3.DatabaseError:
            return True  # the driver reports what is wrong


def _examine(database: str, *, is_geopackage: bool) -> tuple[ExaminedDatabase, dict[str, Mapping[str, str]]]:
    """What is found, and the types of the columns of tables to rewrite."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        names, derived = (layers(connection), []) if is_geopackage else data_tables(connection)
        tables = _attributes(connection, names) if is_geopackage else names
        beside = says_of_itself(connection) if is_geopackage else Beside()
        if is_geopackage and not names and not beside.tiles and _is_empty(connection):
            sys.exit(Exit.NO_LAYERS)
        rules = beside.limits + sum(_rules(connection, name) for name in names)
        found = {name: _examined(connection, name, is_geopackage=is_geopackage) for name in tables}
        unknown = [name for name, table in found.items() if not table.definition and is_view(connection, name)]
    examined = ExaminedDatabase(
        tables=tuple(names),
        beside=beside,
        rules=rules,
        left_out=tuple(sorted({table.left_out for table in found.values()} - {""})),
        derived=tuple(derived),
        unknown=tuple(unknown),
        clock_times={name: tuple(table.clock_times) for name, table in found.items()},
        **{what: _total(getattr(table, what) for table in found.values()) for what in COUNTED},
    )
    return examined, {name: table.definition for name, table in found.items() if table.definition}


def _attributes(connection: sqlite3.Connection, layers: Sequence[str]) -> list[str]:
    """The tables and views of a GeoPackage that may be layers; none if it cannot be read.

    If its `layers` are all that it says to have, the driver reads no others. To replace each of thousands of tables
    takes a time that grows with their square, because SQLite looks at all of them each time.
    """
    try:
        names = [*_data_in(connection), *(name for (name,) in connection.execute(VIEWS))]
        if lists_all(connection):
            listed = set(map(str.casefold, layers))
            names = [name for name in names if name.casefold() in listed]
    except sqlite3.DatabaseError:
        return []  # the driver reports what is wrong
    if len(names) > MAX_LAYERS:
        sys.exit(Exit.TOO_MANY_LAYERS)
    return names


def _data_in(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute(CONTENTS) if not name.lower().startswith(NOT_DATA)]


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Whether a GeoPackage has only the tables that describe it."""
    try:
        return not _data_in(connection)
    except sqlite3.DatabaseError:
        return False  # the driver reports what is wrong


def _rules(connection: sqlite3.Connection, table: str) -> int:
    try:
        return int(connection.execute(RULES.format(text_of(table))).fetchone()[0])
    except sqlite3.DatabaseError:
        return 0  # the driver reports what is wrong


def _examined(connection: sqlite3.Connection, table: str, *, is_geopackage: bool) -> TypedTable:
    try:
        unread, second, foreign = left_out(connection, table, is_geopackage=is_geopackage)
        found = examine(connection, table, is_geopackage=is_geopackage)
        return found._replace(unread=unread, second=second, foreign=foreign)
    except sqlite3.Error:
        return TypedTable({}, {}, {}, {})  # the driver reports what is wrong


def _total(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for found in counts:
        total.update(found)
    return total


def _copy(
    database: str, copy: str, definitions: Mapping[str, Mapping[str, str]], prefix: str, *, is_geopackage: bool
) -> None:
    shutil.copyfile(database, copy)
    try:
        with closing(open_work_file(copy)) as connection:
            if is_geopackage:
                connection.execute(GEOMETRY_COLUMNS)
            connection.execute("ATTACH ? AS former", (f"file:{database}?mode=ro",))
            connection.create_function("exact", 1, _exact, deterministic=True)
            (encoding,) = connection.execute("PRAGMA encoding").fetchone()
            connection.create_function("whole", 1, partial(_whole, encoding=encoding), deterministic=True)
            for table, definition in definitions.items():
                _replace(connection, table, definition, prefix)
    except sqlite3.DatabaseError:
        sys.exit(Exit.DAMAGED)


def _exact(number: float) -> str:
    """A number with all its digits, which SQLite would round to 15."""
    return repr(number).removesuffix(".0")


def _whole(text: bytes, encoding: str) -> bytes:
    """A text without zeros, at which the driver would cut it."""
    return text.decode(encoding, "surrogateescape").replace("\0", "").encode(encoding, "surrogateescape")


def _replace(connection: sqlite3.Connection, table: str, definition: Mapping[str, str], prefix: str) -> None:
    """Recreate `table`, even if it is a view; renaming it would take as long as the file has other tables."""
    values = ", ".join(_value(quoted(name), kind) for name, kind in definition.items())
    columns = ", ".join(f"{quoted(_readable(name, kind, prefix))} {kind}" for name, kind in definition.items())
    kind = "VIEW" if is_view(connection, table) else "TABLE"
    connection.execute(f"DROP {kind} main.{quoted(table)}")
    connection.execute(f"CREATE TABLE main.{quoted(table)} ({columns})")
    connection.execute(f"INSERT INTO main.{quoted(table)} SELECT {values} FROM former.{quoted(table)}")  # noqa: S608 -- quoted


def _readable(name: str, kind: str, prefix: str) -> str:
    """A name by which the driver reads a column."""
    return name if kind.endswith(KEY) or name.lower() not in HIDDEN_NAMES else f"{prefix}{name}"


def _value(name: str, kind: str) -> str:
    """The value of a column, as a text if it becomes one."""
    if kind != TEXT:
        return name
    text = f"CASE WHEN {WITH_ZEROS.format(name)} THEN CAST(whole(CAST({name} AS BLOB)) AS TEXT) ELSE {name} END"
    return f"CASE typeof({name}) WHEN 'real' THEN exact({name}) WHEN 'blob' THEN hex({name}) ELSE {text} END"
