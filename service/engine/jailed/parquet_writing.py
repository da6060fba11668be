"""Converts a GeoPackage to GeoParquet 1.1 if GDAL has no driver for it: pyogrio reads, pyarrow writes.

Runs in the sandbox. Streams batches; never holds the whole file.
"""

import json
import math
import sqlite3
import struct
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyogrio import read_info
from pyogrio.raw import open_arrow

from service.engine.jailed.arrow_columns import storage
from service.engine.jailed.crs84 import CRS84, WGS84_CODES, identifier
from service.engine.jailed.gpkg import WKB_TYPES, columns, quoted, split_code, system_of
from service.engine.jailed.measures import leave_out_measures
from service.engine.jailed.parquet_readback import count
from service.engine.jailed.wkb import read

VERSION = "1.1.0"
BATCH_ROWS = 16_384
WITH_OFFSET = "*[+-][0-9][0-9]:[0-9][0-9]"
UTC = "coalesce(strftime('%Y-%m-%dT%H:%M:%fZ', {0}), substr({0}, 1, 19) || 'Z')"
"""A time without a four-digit year in UTC keeps its digits: such times stand for the distant past or future."""

MALFORMED = (pa.ArrowException, OSError, ValueError, LookupError)


def main(gpkg: str, parquet: str, name: str, measured: str) -> dict[str, object]:
    """Write the only layer of `gpkg` to `parquet`; return what that, read back, holds of the dataset `name`.

    Unless `measured` is empty, geometries may have measures, which the format forbids.
    """
    if measured:
        leave_out_measures(gpkg)
    with closing(sqlite3.connect(gpkg, isolation_level=None)) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        is_known = bool(system_of(connection, table)["known"])
        moments = [name for name, declared in columns(connection, table) if declared == "DATETIME"]
        late = _count_beyond_utc(connection, table, moments)
        local = _to_utc(connection, table, moments)
        # Elevations are not required of geometries of any type: pyogrio knows no such type.
        connection.execute("UPDATE gpkg_geometry_columns SET z = 2 WHERE geometry_type_name = 'GEOMETRY' AND z = 1")
    _write(gpkg, parquet, local, is_known=is_known)
    try:
        layers = {name: count(parquet)}
    except MALFORMED:
        layers = {}
    return {"layers": layers, "beyond_utc": late}


def _write(gpkg: str, parquet: str, local: set[str], *, is_known: bool) -> None:
    """GeoParquet 1.1: WKB, types, bbox, coordinate system; times of the columns `local` are in no zone."""
    info = read_info(gpkg)
    with open_arrow(gpkg, batch_size=BATCH_ROWS, use_pyarrow=True) as (meta, stream):
        geometry = meta["geometry_name"] if info["geometry_type"] is not None else None
        fields = [_field(field, local) for field in stream.schema]
        seen = _Seen()
        crs = _declared_crs(stream.schema.field(geometry)) if geometry and is_known else None
        # Many readers expect `geo` in the schema, which is written before the content is known.
        early = {"geo": _document(geometry, {"encoding": "WKB", "geometry_types": [], "crs": crs})} if geometry else {}
        schema = pa.schema(fields, metadata=early)
        with pq.ParquetWriter(parquet, schema, compression="zstd") as writer:
            for batch in stream:
                written = [
                    _as(field.type, storage(column)) for field, column in zip(fields, batch.columns, strict=True)
                ]
                writer.write_batch(pa.record_batch(written, schema=schema))
                if geometry:
                    seen.take(batch.column(geometry))
            if geometry:
                bounds = [float(value) for value in info["total_bounds"]] if seen.types else []
                writer.add_key_value_metadata({"geo": _document(geometry, seen.describe(bounds) | {"crs": crs})})


def _document(geometry: str, column: dict[str, Any]) -> str:
    return json.dumps({"version": VERSION, "primary_column": geometry, "columns": {geometry: column}})


def _count_beyond_utc(connection: sqlite3.Connection, table: str, moments: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By column: how many times in other zones have no four-digit year in UTC, and the row of the first one."""
    condition = "{0} GLOB ? AND strftime('%Y', {0}) IS NULL"
    query = f"SELECT count(*), min(rowid) FROM {quoted(table)} WHERE {condition}"  # noqa: S608 -- quoted
    found = {name: connection.execute(query.format(quoted(name)), (WITH_OFFSET,)).fetchone() for name in moments}
    return {name: counts for name, counts in found.items() if counts[0]}


def _to_utc(connection: sqlite3.Connection, table: str, moments: Sequence[str]) -> set[str]:
    """Convert times in other zones to UTC; return the columns in which no time has a zone."""
    for column in map(quoted, moments):
        query = f"UPDATE {quoted(table)} SET {column} = {UTC.format(column)} WHERE {column} GLOB ?"  # noqa: S608 -- quoted
        connection.execute(query, (WITH_OFFSET,))
    zoned = f"SELECT 1 FROM {quoted(table)} WHERE {{0}} GLOB '*Z' LIMIT 1"  # noqa: S608 -- quoted
    return {name for name in moments if connection.execute(zoned.format(quoted(name))).fetchone() is None}


def _field(field: pa.Field, local: set[str]) -> pa.Field:
    kind = getattr(field.type, "storage_type", field.type)
    is_local = field.name in local and pa.types.is_timestamp(kind)
    return pa.field(field.name, pa.timestamp(kind.unit) if is_local else kind, nullable=True)


def _as(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """`values` as the type `kind`, which differs from theirs at most in the time zone."""
    return values if values.type == kind else values.cast(pa.int64()).cast(kind)


def _declared_crs(field: pa.Field) -> dict[str, Any]:
    extension = json.loads((field.metadata or {}).get(b"ARROW:extension:metadata", b"") or b"{}")
    crs = extension.get("crs")
    return crs if isinstance(crs, dict) and identifier(crs) not in WGS84_CODES else CRS84


class _Seen:
    """Collects geometry types and elevations, batch by batch."""

    def __init__(self) -> None:
        self.types: set[str] = set()
        self._heights: list[float] = []

    def take(self, values: pa.Array) -> None:

        heads = pc.unique(pc.binary_slice(storage(values), 0, 5)).to_pylist()
        codes = [split_code(struct.unpack("<I" if head[0] else ">I", head[1:5])[0]) for head in heads if head]
        self.types.update(WKB_TYPES[basic] + (" Z" if has_z else "") for basic, has_z in codes)
        if any(has_z for _, has_z in codes):
            for wkb in storage(values).to_pylist():
                self._heights += _height_range(wkb) if wkb else []

    def describe(self, bounds: list[float]) -> dict[str, Any]:
        described: dict[str, Any] = {"encoding": "WKB", "geometry_types": sorted(self.types)}
        if bounds and self._heights:
            bounds = [*bounds[:2], min(self._heights), *bounds[2:], max(self._heights)]
        return described | ({"bbox": bounds} if bounds else {})


def _height_range(wkb: bytes) -> list[float]:
    heights = [height for height in read(wkb).heights() if not math.isnan(height)]
    return [min(heights), max(heights)] if heights else []
