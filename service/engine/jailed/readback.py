"""Counts what a result contains, from its bytes. Runs in the sandbox.

It uses none of the code that wrote the result, so that a bug in writing is not repeated in reading.
"""

import csv
import json
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

from service.engine.jailed.gpkg import quoted

MOST_CELLS = 300_000
"""In larger tables, only rows and geometries are counted: counting values would take as long as writing them."""
EXPRESSIONS_A_QUERY = 150
SPATIALITE_CODE_AT = 40
"""Where the code of its type begins in a geometry, from 1: 1000 is added to it for elevations, 2000 for measures."""
CHUNK = 1 << 20
SHEET_OR_ROW = re.compile(rb'<table:table table:name="([^"]*)"|<table:table-row\b')
MALFORMED = (OSError, ValueError, LookupError, struct.error, sqlite3.Error, csv.Error, zipfile.BadZipFile, zlib.error)

Counted = dict[str, object]


def main(reader: str, names: str) -> dict[str, object]:
    """Return the counts of the layers in `names`, JSON of the file that holds each; unreadable layers are left out."""
    layers: dict[str, Counted] = {}
    for name, file in json.loads(names).items():
        try:
            layers[name] = READERS[reader](file, name)
        except MemoryError:
            raise
        except MALFORMED:
            continue
    return {"layers": layers}


def _database(file: str, name: str, geometry_query: str, dimensions: Mapping[Any, tuple[bool, bool]]) -> Counted:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        found = connection.execute(geometry_query, (name,)).fetchone()
        geometry = None if found is None else found[0]
        has_z, has_m = dimensions.get(found[1], (None, None)) if found is not None else (None, None)
        rows = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
        if not rows:
            return {"features": 0}  # the table does not exist
        listed = [row[1] for row in rows if row[1] != geometry and not row[5]]
        asked = ["count(*)", f"count({quoted(geometry)})" if geometry else "0"]
        asked += [text for column in listed for text in _counts(column)]
        counts: list[object] = []
        for start in range(0, len(asked), EXPRESSIONS_A_QUERY):
            part = ", ".join(asked[start : start + EXPRESSIONS_A_QUERY])
            counts += connection.execute(f"SELECT {part} FROM {quoted(name)}").fetchone()  # noqa: S608 -- quoted
    columns = {
        column: {"filled": counts[2 + 2 * at], "total": finite(counts[3 + 2 * at])} for at, column in enumerate(listed)
    }
    geometries = counts[1]
    return {"features": counts[0], "geometries": geometries, "has_z": has_z, "has_m": has_m, "columns": columns}


def _counts(column: str) -> tuple[str, str]:
    number = f"typeof({quoted(column)}) IN ('integer', 'real')"
    return f"count({quoted(column)})", f"total(CASE WHEN {number} THEN abs({quoted(column)} + 0.0) END)"


def finite(value: object) -> float | None:
    """A sum, None if there is none or it is infinite."""
    return value if isinstance(value, float) and abs(value) < float("inf") else None


def _geopackage(file: str, name: str) -> Counted:
    query = "SELECT column_name, z || m FROM gpkg_geometry_columns WHERE table_name = ?"
    dimensions = {f"{z}{m}": (z > 0, m > 0) for z in range(3) for m in range(3)}
    return _database(file, name, query, dimensions)


def _spatialite(file: str, name: str) -> Counted:
    """Each geometry has its dimensions in its header; a column for geometries of any type has none."""
    query = "SELECT f_geometry_column, NULL FROM geometry_columns WHERE lower(f_table_name) = lower(?)"
    return _database(file, name, query, {}) | _dimensions_in_headers(file, name, query)


def _dimensions_in_headers(file: str, name: str, geometry_query: str) -> Counted:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        found = connection.execute(geometry_query, (name,)).fetchone()
        if found is None:
            return {}
        codes = f"SELECT DISTINCT hex(substr({quoted(found[0])}, {SPATIALITE_CODE_AT}, 4)) FROM {quoted(name)}"  # noqa: S608 -- quoted
        kinds = [int.from_bytes(bytes.fromhex(code), "little") // 1000 for (code,) in connection.execute(codes)]
    return {"has_z": any(kind & 1 for kind in kinds), "has_m": any(kind & 2 for kind in kinds)}


def _delimited(file: str, _: str) -> Counted:
    """A blank line is the empty cell of a single column, beside which the driver may also write an empty one."""
    csv.field_size_limit(Path(file).stat().st_size + 1)
    with Path(file).open(encoding="utf-8", newline="") as text:
        rows = csv.reader(text)
        header = next(rows, [])
        filled = [0] * len(header)
        features = cells = 0
        for row in rows:
            features += 1
            cells += len(row)
            if cells <= MOST_CELLS:
                for at in (at for at, cell in enumerate(row) if cell):
                    filled[at] += 1
    columns = {name: {"filled": count} for name, count in zip(header, filled, strict=True)}
    return {"features": features, **({"columns": columns} if cells <= MOST_CELLS else {})}


def _lines(file: str, _: str) -> Counted:
    """One geometry per line; an empty collection stands for a feature without geometry."""
    features = geometries = 0
    has_z = has_m = False
    with Path(file).open(encoding="utf-8") as lines:
        for line in lines:
            kind, _, coordinates = line.rstrip("\n").partition("(")
            if coordinates[-1:] not in {"", ")"}:
                raise ValueError("cut off")
            features += 1
            geometries += kind != "GEOMETRYCOLLECTION EMPTY"
            dimensions = kind.partition(" ")[2] if coordinates else ""
            has_z = has_z or "Z" in dimensions
            has_m = has_m or "M" in dimensions
    return {"features": features, "geometries": geometries, "has_z": has_z, "has_m": has_m}


def _opendocument(file: str, name: str) -> Counted:
    """The rows of a sheet below its header."""
    rows, is_wanted, rest = -1, False, b""
    with zipfile.ZipFile(file) as book, book.open("content.xml") as content:
        while piece := content.read(CHUNK):
            whole, bracket, cut = (rest + piece).rpartition(b"<")
            for tag in SHEET_OR_ROW.finditer(whole):
                if tag[1] is not None:
                    is_wanted = unescape(tag[1].decode()) == name
                elif is_wanted:
                    rows += 1
            rest = bracket + cut
    if rows < 0:
        raise LookupError(name)
    return {"features": rows}


READERS: Mapping[str, Callable[[str, str], Counted]] = {
    "geopackage": _geopackage,
    "spatialite": _spatialite,
    "delimited": _delimited,
    "lines": _lines,
    "opendocument": _opendocument,
}
