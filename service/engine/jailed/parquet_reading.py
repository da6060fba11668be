"""Converts GeoParquet to a GeoPackage if GDAL has no driver for it: pyarrow reads, pyogrio writes. Runs in the sandbox.

`python -m …parquet_reading PARQUET WORK_FILE SHEETS_FILE CHANGES_FILE`. Streams batches; never holds the whole file.
"""

import json
import re
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types
from pyogrio import write_arrow

from service.engine.jailed.arrow_columns import (
    count_binary,
    count_emptied,
    count_infinite,
    count_moved,
    count_rounded,
    mapped,
    plain,
    storage,
    to_periods,
)
from service.engine.jailed.crs84 import CRS84, WGS84_CODES, identifier
from service.engine.jailed.exits import Exit
from service.engine.jailed.geoarrow import DEPTHS, declared_columns, to_wkb
from service.engine.jailed.gpkg import FID, GEOMETRY

GEO = b"geo"
BATCH_ROWS = 16_384
LAYER = "in0"
CRS_TEXT = re.compile(
    r"\s*(?:(?:GEOG|GEOD|PROJ|COMPOUND|BOUND|COMPD|VERT)(?:CRS|_?CS)\s*\[|EPSG:\d+\s*$|OGC:CRS84\s*$)",
    re.IGNORECASE,
)
"""WKT, which drafts of the format used for the system, or a code; never the name of a file or an address."""
CODES_OF_TEXTS = {"OGC:CRS84": "EPSG:4326"}
Changes = dict[str, Counter[str]]
COUNTS: Mapping[str, Callable[[pa.Array], int]] = {"rounded": count_rounded, "moved": count_moved}
"""The kinds of changes, and how many of the values in an array are changed so."""
COUNTS_OF_TABLES: Mapping[str, Callable[[pa.Array], int]] = {
    **COUNTS,
    "emptied": count_emptied,
    "infinite": count_infinite,
    "spelled": count_binary,
}
"""The same in a table without geometry, which is written as text to find its geometry."""
UNREAD = "unread"
"""The kind of change of geometries that are none."""
MALFORMED = (
    pa.ArrowException,
    OSError,
    ValueError,
    struct.error,
    RecursionError,
    AttributeError,
    TypeError,
    LookupError,
)
"""What pyarrow raises, and what follows from metadata that does not match the format."""


def main(parquet: str, work_file: str, sheets_file: str, changes_file: str) -> None:
    """Write the content of `parquet` to `work_file`, or, as a table, to `sheets_file` if it declares no geometry.

    For each kind of change, the number of values per column goes to `changes_file`.
    """
    changes: Changes = {kind: Counter() for kind in (*COUNTS_OF_TABLES, UNREAD)}
    try:
        file = pq.ParquetFile(parquet, memory_map=False, pre_buffer=False)  # reading ahead takes threads
        geo = json.loads((file.metadata.metadata or {}).get(GEO, b"null")) or {}
        columns = geo.get("columns", {}) if geo else declared_columns(file.schema_arrow)
        primary = str(geo.get("primary_column")) if geo else next(iter(columns), "")
        if primary in columns:
            _read_features(file, columns[primary], (primary, work_file), changes)
        else:
            _read_table(file, sheets_file, changes)
    except MemoryError:
        raise
    except MALFORMED:
        sys.exit(Exit.DAMAGED)
    counted = {kind: +columns for kind, columns in changes.items()}
    Path(changes_file).write_text(json.dumps(counted), encoding="utf-8")


def _count(
    changes: Changes, name: str, values: pa.Array, counts: Mapping[str, Callable[[pa.Array], int]] = COUNTS
) -> None:
    for kind, count in counts.items():
        changes[kind][name] += count(values)


def _read_table(file: Any, sheets_file: str, changes: Changes) -> None:
    intervals = _intervals(file)

    def convert(name: str, values: pa.Array) -> pa.Array:
        if name in intervals:
            return to_periods(values)
        _count(changes, name, values, COUNTS_OF_TABLES)
        return _finite(plain(values, binary=lambda same: mapped(same, lambda value: value.hex().upper())))

    _write_gpkg(file, file.schema_arrow.names, convert, sheets_file, {})


def _read_features(file: Any, column: Mapping[str, Any], names_and_file: tuple[str, str], changes: Changes) -> None:
    primary, work_file = names_and_file
    covering = column.get("covering", {}).get("bbox", {}).get("xmin", [""])[0]
    names = [name for name in file.schema_arrow.names if name != covering]
    encoding = str(column.get("encoding", "WKB")).casefold()
    if encoding != "wkb" and encoding not in DEPTHS:
        sys.exit(Exit.UNKNOWN_GEOMETRY)
    intervals = _intervals(file)

    def convert(name: str, values: pa.Array) -> pa.Array:
        if name == primary:
            geometries = _geometry(values, encoding)
            changes[UNREAD][primary] += pc.sum(pc.greater(pc.binary_length(geometries), 0)).as_py() or 0
            return geometries
        if name in intervals:
            return to_periods(values)
        _count(changes, name, values)
        return plain(values, binary=lambda same: same)

    _write_gpkg(file, names, convert, work_file, {"geometry_name": primary, "crs": _crs_text(column)})
    changes[UNREAD][primary] -= _written_geometries(work_file)


def _written_geometries(work_file: str) -> int:
    with closing(sqlite3.connect(f"file:{work_file}?mode=ro", uri=True)) as connection:
        return int(connection.execute(f"SELECT count({GEOMETRY}) FROM {LAYER}").fetchone()[0])  # noqa: S608 -- ours


def _intervals(file: Any) -> set[str]:
    """The columns of INTERVAL, which no type of Arrow tells from other bytes."""
    columns = map(file.schema.column, range(len(file.schema.names)))
    return {column.path for column in columns if column.converted_type == "INTERVAL"}


def _write_gpkg(
    file: Any,
    names: list[str],
    convert: Callable[[str, pa.Array], pa.Array],
    gpkg: str,
    geometry: Mapping[str, str | None],
) -> None:

    def converted(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([convert(name, batch.column(name)) for name in names], names=names)

    empty = converted(pa.RecordBatch.from_pylist([], schema=file.schema_arrow))
    batches = map(converted, file.iter_batches(BATCH_ROWS, columns=names, use_threads=False))
    failures: list[Exception] = []
    try:
        _write(pa.RecordBatchReader.from_batches(empty.schema, _noting(batches, failures)), gpkg, geometry)
    except RuntimeError:
        raise failures[0] if failures else ValueError from None


def _noting(batches: Iterator[pa.RecordBatch], failures: list[Exception]) -> Iterator[pa.RecordBatch]:
    """Yield `batches`, and store the error that ends them in `failures`: the consumer reports only that they ended."""
    try:
        yield from batches
    except Exception as failure:
        failures.append(failure)
        raise


def _write(reader: pa.RecordBatchReader, gpkg: str, geometry: Mapping[str, str | None]) -> None:
    write_arrow(
        reader,
        gpkg,
        layer=LAYER,
        driver="GPKG",
        geometry_type="Unknown" if geometry else None,
        dataset_options={"VERSION": "1.2"},
        layer_options={"SPATIAL_INDEX": "NO", "FID": FID, **({"GEOMETRY_NAME": GEOMETRY} if geometry else {})},
        **geometry,
    )


def _crs_text(column: Mapping[str, Any]) -> str | None:
    """The system of a geometry column in a form that GDAL reads, None if it is unknown."""
    crs = column.get("crs", CRS84)
    if isinstance(crs, str) and CRS_TEXT.match(crs):
        return CODES_OF_TEXTS.get(crs, crs)
    if not isinstance(crs, dict):
        return None
    code = identifier(crs)
    if code in WGS84_CODES:
        return "EPSG:4326"
    return f"EPSG:{code[1]}" if code[0] == "EPSG" else json.dumps(crs)


def _geometry(values: pa.Array, encoding: str) -> pa.Array:
    if encoding == "wkb":
        return storage(values).cast(pa.binary())
    return pa.array([to_wkb(value, encoding) for value in storage(values).to_pylist()], pa.binary())


def _finite(values: pa.Array) -> pa.Array:
    """`values` without infinite numbers, of whose text only newer drivers make numbers again."""
    if not types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_inf(values), pa.scalar(None, values.type), values)


if __name__ == "__main__":
    main(*sys.argv[1:5])
