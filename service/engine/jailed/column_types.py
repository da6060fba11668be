"""Gives columns of a database types that its driver reads.

Runs in the sandbox: `python -m …column_types FILE COPY REPORT KIND PREFIX`. A driver makes 0 of a text in a column of
integers, and cuts integers that exceed the type of the first one. The driver of GeoPackage takes a column of a type
that the standard does not define, such as VARCHAR(80), for a geometry and leaves it out. Neither reads the key of a
table as a column, nor does that of SQLite a column of such a name. Both cut texts at a byte of zeros.
Uses only the standard library.
"""

import json
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from service.engine.jailed.database import data_tables, layers
from service.engine.jailed.declared import WITH_ZEROS
from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import MAX_LAYERS, open_work_file, quoted, text_of
from service.engine.jailed.self_description import RULES, VIEWS, Beside, lists_all, says_of_itself
from service.engine.jailed.table_types import HIDDEN_NAMES, KEY, TEXT, TypedTable, examine, is_view
from service.engine.jailed.unread_geometries import left_out

GEOPACKAGE = "geopackage"
COUNTED = ("mistyped", "spelled", "cut", "rounded", "unread", "second", "foreign")
NOT_DATA = ("gpkg_", "rtree_", "sqlite_")
CONTENTS = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid"


def main(database: str, copy: str, report: str, kind: str = "", prefix: str = "") -> None:
    """Write `database` to `copy` with types that hold all values; nothing if it declares only such.

    Write to `report` the names of the tables that hold data, how many values of each column are of another type than
    it declares, how many bytes in it become texts, how many of its texts lose bytes of zeros, how many of its times
    digits beyond milliseconds, how many of its geometries are left out, or name another system than their table, which
    layers are views with functions that SQLite alone does not have, and how many descriptions a GeoPackage has of
    itself. If `kind` is "geopackage", the tables are its layers; else the copy has `prefix` before names of columns
    that the driver does not read.
    """
    try:
        written, definitions = _report(database, is_geopackage=kind == GEOPACKAGE)
    except UnicodeDecodeError:  # of the message of an error, which quotes the damaged schema
        sys.exit(Exit.DAMAGED)
    Path(report).write_text(json.dumps(written), encoding="utf-8")
    if definitions:
        _copy(database, copy, definitions, prefix)


def _report(database: str, *, is_geopackage: bool) -> tuple[dict[str, object], dict[str, Mapping[str, str]]]:
    """What to write to the report, and the types of the columns of tables to rewrite."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        names, derived = (layers(connection), []) if is_geopackage else data_tables(connection)
        tables = _attributes(connection, names) if is_geopackage else names
        beside = says_of_itself(connection) if is_geopackage else Beside()
        if is_geopackage and not names and not beside.tiles and _is_empty(connection):
            sys.exit(Exit.NO_LAYERS)
        rules = beside.limits + sum(_rules(connection, name) for name in names)
        found = {name: _examined(connection, name, is_geopackage=is_geopackage) for name in tables}
        unknown = [name for name, table in found.items() if not table.definition and is_view(connection, name)]
    written: dict[str, object] = {
        "tables": names,
        "beside": beside,
        "rules": rules,
        "left_out": sorted({table.left_out for table in found.values()} - {""}),
        "derived": derived,
        "unknown": unknown,
        "clock_times": {name: table.clock_times for name, table in found.items()},
        **{what: _total(getattr(table, what) for table in found.values()) for what in COUNTED},
    }
    return written, {name: table.definition for name, table in found.items() if table.definition}


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


def _copy(database: str, copy: str, definitions: Mapping[str, Mapping[str, str]], prefix: str) -> None:
    shutil.copyfile(database, copy)
    try:
        with closing(open_work_file(copy)) as connection:
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


if __name__ == "__main__":
    main(*sys.argv[1:6])
