"""Edits the work file before it is written out. Runs in the sandbox.

The edits are JSON: a list of `{"table", "name", "columns": {old: new}, "unwritten": [name], "explode", "straighten",
"move", "flatten", "guard", "escape", "leave_out", "elevation", "geometry", "system_is_unknown"}`.
"""

import json
import sqlite3
import struct
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from service.engine.jailed.gpkg import (
    FID,
    GEOMETRY,
    change_geometries,
    columns,
    has_geometry,
    open_work_file,
    quoted,
    spare_names,
    split_code,
    text_columns,
    wkb_offset,
)
from service.engine.jailed.shapes import is_collection, straighten, taken_apart
from service.engine.jailed.values import BARE, ESCAPE_MARK, LIKE_ESCAPES
from service.engine.jailed.wkb import flattened, moved_around

CHANGES = {"move": moved_around, "flatten": flattened}
"""What replaces each geometry, by the edit."""
HEADER = struct.Struct("<2sBBi")
Z_AT = 21
CARTESIAN = -1
NO_ENVELOPE = 1
HEAD_BYTES = 80
"""More than the longest header of a geometry including its type."""
TABLES_BY_NAME = ("gpkg_contents", "gpkg_geometry_columns", "gpkg_ogr_contents", "gpkg_data_columns", "gpkg_extensions")


def main(work_file: str, edits_file: str) -> None:
    """Apply the edits listed in `edits_file` to `work_file`."""
    connection = open_work_file(work_file)
    connection.execute("PRAGMA legacy_alter_table = ON")
    edits = json.loads(Path(edits_file).read_text(encoding="utf-8"))
    connection.execute("BEGIN")
    for edit in edits:
        _apply(connection, edit)
    names = [edit["name"] for edit in edits]
    spare = spare_names(len(edits), [*names, *(edit["table"] for edit in edits)])
    for edit, name in zip(edits, spare, strict=True):
        _rename_table(connection, edit["table"], name)
    for old, new in zip(spare, names, strict=True):
        _rename_table(connection, old, new)
    connection.execute("COMMIT")


def _apply(connection: sqlite3.Connection, edit: Mapping[str, Any]) -> None:
    """Change the features and columns of one table."""
    if edit["straighten"]:
        straighten(connection, edit["table"])
    for name in filter(edit.get, CHANGES):
        change_geometries(connection, edit["table"], CHANGES[name])
    if edit["explode"]:
        _explode(connection, edit["table"])
    _change_texts(connection, edit)
    if edit["system_is_unknown"]:
        _forget_system(connection, edit["table"])
    for name in edit["unwritten"]:
        connection.execute(f"ALTER TABLE {quoted(edit['table'])} DROP COLUMN {quoted(name)}")
    _rename_columns(connection, edit["table"], edit["columns"])
    if edit["elevation"]:  # once a column of this name has another
        _add_elevation(connection, edit["table"], edit["elevation"])
    if edit["geometry"]:
        _rename_geometry(connection, edit["table"], edit["geometry"])


def _change_texts(connection: sqlite3.Connection, edit: Mapping[str, Any]) -> None:
    if edit["guard"]:
        _guard(connection, edit["table"], edit["guard"])
    if edit["escape"]:
        _escape(connection, edit["table"])
    if edit["leave_out"]:
        _leave_out(connection, edit["table"], edit["leave_out"])


def _rename_columns(connection: sqlite3.Connection, table: str, new_names: Mapping[str, str]) -> None:
    """Rename columns by way of spare names, so that two can swap names."""
    taken = [name for name, _ in columns(connection, table)]
    spare = spare_names(len(new_names), [*taken, *new_names.values()])
    for steps in (zip(new_names, spare, strict=True), zip(spare, new_names.values(), strict=True)):
        for old, new in steps:
            connection.execute(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(old)} TO {quoted(new)}")
            query = "UPDATE gpkg_data_columns SET column_name = ? WHERE table_name = ? AND column_name = ?"
            if _exists(connection, "gpkg_data_columns"):
                connection.execute(query, (new, table, old))


def _rename_geometry(connection: sqlite3.Connection, table: str, new: str) -> None:
    if has_geometry(connection, table):
        connection.execute(f"ALTER TABLE {quoted(table)} RENAME COLUMN {GEOMETRY} TO {quoted(new)}")
        connection.execute("UPDATE gpkg_geometry_columns SET column_name = ? WHERE table_name = ?", (new, table))


def _forget_system(connection: sqlite3.Connection, table: str) -> None:
    """Record that the coordinates are in an unknown plane system; the driver records degrees."""
    for name in ("gpkg_geometry_columns", "gpkg_contents"):
        connection.execute(f"UPDATE {name} SET srs_id = {CARTESIAN} WHERE table_name = ?", (table,))  # noqa: S608 -- ours


def _guard(connection: sqlite3.Connection, table: str, live: str) -> None:
    """Put an apostrophe before texts that begin with `live`, perhaps after blanks."""
    for column in text_columns(connection, table):
        query = f"UPDATE {quoted(table)} SET {column} = ? || {column} WHERE substr({BARE.format(column)}, 1, ?) = ?"  # noqa: S608 -- quoted
        connection.execute(query, ("'", len(live), live))


def _escape(connection: sqlite3.Connection, table: str) -> None:
    """Escape the mark of escapes in texts that have one; `_x005F_` stands for its first character."""
    mark, escaped = ESCAPE_MARK, f"{ESCAPE_MARK}{ord(ESCAPE_MARK[0]):04X}_{ESCAPE_MARK[1:]}"
    for column in text_columns(connection, table):
        query = f"UPDATE {quoted(table)} SET {column} = replace({column}, ?, ?) WHERE {LIKE_ESCAPES.format(column)}"  # noqa: S608 -- quoted
        connection.execute(query, (mark, escaped))


def _leave_out(connection: sqlite3.Connection, table: str, characters: str) -> None:
    """Remove all `characters` from texts."""
    for column, character in product(text_columns(connection, table), characters):
        query = f"UPDATE {quoted(table)} SET {column} = replace({column}, ?1, '') WHERE instr({column}, ?1)"  # noqa: S608 -- quoted
        connection.execute(query, (character,))


def _add_elevation(connection: sqlite3.Connection, table: str, name: str) -> None:
    """Add a column with the third coordinate of points."""
    connection.create_function("point_z", 1, _point_z, deterministic=True)
    connection.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)} REAL")
    connection.execute(f"UPDATE {quoted(table)} SET {quoted(name)} = point_z({GEOMETRY})")  # noqa: S608 -- quoted


def _point_z(blob: bytes | None) -> float | None:
    if blob is None:
        return None
    wkb = blob[wkb_offset(blob[3]) :]
    basic, has_z = split_code(struct.unpack("<I" if wkb[0] else ">I", wkb[1:5])[0])
    return float(struct.unpack_from("<d" if wkb[0] else ">d", wkb, Z_AT)[0]) if basic == 1 and has_z else None


def _rename_table(connection: sqlite3.Connection, old: str, new: str) -> None:
    if old == new:
        return
    connection.execute(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new)}")
    for name in filter(lambda name: _exists(connection, name), TABLES_BY_NAME):
        connection.execute(f"UPDATE {name} SET table_name = ? WHERE table_name = ?", (new, old))  # noqa: S608 -- ours
    connection.execute("UPDATE gpkg_contents SET identifier = ? WHERE table_name = ?", (new, new))


def _exists(connection: sqlite3.Connection, table: str) -> bool:
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return connection.execute(query, (table,)).fetchone() is not None


def _explode(connection: sqlite3.Connection, table: str) -> None:
    """Replace every geometry collection by one feature per family, each with all attributes."""
    others = ", ".join(quoted(name) for name, _ in columns(connection, table))
    listed = f", {others}" if others else ""
    insert = (
        f"INSERT INTO {quoted(table)} ({GEOMETRY}{listed}) "  # noqa: S608 -- quoted
        f"SELECT ?{listed} FROM {quoted(table)} WHERE {FID} = ?"
    )
    for fid in _collections(connection, table):
        query = f"SELECT {GEOMETRY} FROM {quoted(table)} WHERE {FID} = ?"  # noqa: S608 -- quoted
        (blob,) = connection.execute(query, (fid,)).fetchone()
        for part in taken_apart(blob).values():
            connection.execute(insert, (_blob(part, blob), fid))
        connection.execute(f"DELETE FROM {quoted(table)} WHERE {FID} = ?", (fid,))  # noqa: S608 -- quoted


def _collections(connection: sqlite3.Connection, table: str) -> list[int]:
    """The features whose geometry is a collection, detected from its first bytes alone."""
    query = f"SELECT {FID}, substr({GEOMETRY}, 1, {HEAD_BYTES}) FROM {quoted(table)}"  # noqa: S608 -- quoted
    return [fid for fid, head in connection.execute(query) if head is not None and is_collection(head)]


def _blob(wkb: bytes, like: bytes) -> bytes:
    magic, version, _, srs_id = HEADER.unpack_from(like)
    return HEADER.pack(magic, version, NO_ENVELOPE, srs_id) + wkb
