"""Edits of the work file before it is written out. Runs in the jail: `python -m service.engine.prepare FILE EDITS`.

EDITS is JSON: a list of `{"table", "columns": {old: new}, "explode", "name"}`. The standard library only.
"""

import json
import sqlite3
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from service.engine.exits import Exit
from service.engine.gpkg import FID, GEOMETRY, WKB_TYPES, columns, open_work_file, quoted, split_code, wkb_offset
from service.engine.wkb import parts_by_family

HEADER = struct.Struct("<2sBBi")
NO_ENVELOPE = 1
TABLES_BY_NAME = ("gpkg_contents", "gpkg_geometry_columns", "gpkg_ogr_contents", "gpkg_data_columns", "gpkg_extensions")


def main(work_file: str, edits_file: str) -> None:
    """Make the edits that `edits_file` lists in `work_file`."""
    connection = open_work_file(work_file)
    connection.execute("PRAGMA legacy_alter_table = ON")
    edits = json.loads(Path(edits_file).read_text(encoding="utf-8"))
    connection.execute("BEGIN")
    for edit in edits:
        if edit["explode"]:
            _explode(connection, edit["table"])
        _rename_columns(connection, edit["table"], edit["columns"])
    for edit in edits:
        _rename_table(connection, edit["table"], f"__{edit['name']}")
    for edit in edits:
        _rename_table(connection, f"__{edit['name']}", edit["name"])
    connection.execute("COMMIT")


def _rename_columns(connection: sqlite3.Connection, table: str, new_names: Mapping[str, str]) -> None:
    """Rename columns by way of names that none has, so that two can swap theirs."""
    temporary = {f"__{number}": new for number, new in enumerate(new_names.values())}
    for steps in (dict(zip(new_names, temporary, strict=True)), temporary):
        for old, new in steps.items():
            connection.execute(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(old)} TO {quoted(new)}")
            query = "UPDATE gpkg_data_columns SET column_name = ? WHERE table_name = ? AND column_name = ?"
            if _exists(connection, "gpkg_data_columns"):
                connection.execute(query, (new, table, old))


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
    """Put one feature per family, with all attributes, in the place of every geometry collection."""
    others = ", ".join(quoted(name) for name, _ in columns(connection, table))
    listed = f", {others}" if others else ""
    insert = (
        f"INSERT INTO {quoted(table)} ({GEOMETRY}{listed}) "  # noqa: S608 -- quoted
        f"SELECT ?{listed} FROM {quoted(table)} WHERE {FID} = ?"
    )
    for fid, blob in connection.execute(f"SELECT {FID}, {GEOMETRY} FROM {quoted(table)}").fetchall():  # noqa: S608
        wkb = _collection(blob)
        if wkb is None:
            continue
        try:
            parts = parts_by_family(wkb)
        except (ValueError, struct.error):
            sys.exit(Exit.UNKNOWN_GEOMETRY)
        for part in parts.values():
            connection.execute(insert, (_blob(part, blob), fid))
        connection.execute(f"DELETE FROM {quoted(table)} WHERE {FID} = ?", (fid,))  # noqa: S608


def _collection(blob: bytes | None) -> bytes | None:
    """The WKB in a geometry blob if it is a collection."""
    if blob is None:
        return None
    wkb = blob[wkb_offset(blob[3]) :]
    basic, _ = split_code(struct.unpack("<I" if wkb[0] else ">I", wkb[1:5])[0])
    return wkb if WKB_TYPES.get(basic) == "GeometryCollection" else None


def _blob(wkb: bytes, like: bytes) -> bytes:
    magic, version, _, srs_id = HEADER.unpack_from(like)
    return HEADER.pack(magic, version, NO_ENVELOPE, srs_id) + wkb


if __name__ == "__main__":
    main(*sys.argv[1:3])
