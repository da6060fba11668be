"""GeoParquet: few bytes that claim to be many rows, and invalid geometries."""

import io
import json
import struct
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.case import LIMIT, REFUSED, Case, constant

POINT = struct.pack("<BI2d", 1, 1, 1.0, 2.0)
DEEP = bytes.fromhex("010700000001000000") * 30_000
COUNT = bytes.fromhex("0102000000ffffffff")


def _file(table: pa.Table, geo: Any = None) -> bytes:
    buffer = io.BytesIO()
    described = (
        table.replace_schema_metadata({"geo": geo if isinstance(geo, str) else json.dumps(geo)}) if geo else table
    )
    pq.write_table(described, buffer, compression="zstd")
    return buffer.getvalue()


def _geo(**column: Any) -> dict[str, Any]:
    return {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": [], **column}},
    }


def _of(blob: bytes, **column: Any) -> bytes:
    return _file(pa.table({"geometry": pa.array([blob], pa.binary()), "a": [1]}), _geo(**column))


def _rows(count: int) -> bytes:
    return _file(pa.table({"a": pa.nulls(count, pa.int32()), "b": pa.nulls(count, pa.string())}))


def _with_footer(length: int) -> bytes:
    whole = _of(POINT)
    return whole[:-8] + struct.pack("<I", length) + whole[-4:]


CASES = {
    "GeoParquet of thirty million rows": Case("a.parquet", lambda _: _rows(15_000_000), LIMIT, {"outputFormat": "Csv"}),
    "GeoParquet of long texts that are the same": Case(
        "a.parquet",
        lambda _: _file(
            pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int32()), ["x" * 1_000_000])})
        ),
        LIMIT,
        {"outputFormat": "Csv"},
    ),
    "GeoParquet with a footer of four gigabytes": Case("a.parquet", lambda _: _with_footer(0xFFFFFFFF), REFUSED),
    "GeoParquet with a footer of nothing": Case("a.parquet", lambda _: _with_footer(0), REFUSED),
    "GeoParquet that is only its marks": Case("a.parquet", constant(b"PAR1" + bytes(8) + b"PAR1"), REFUSED),
    "GeoParquet geometry in 30,000 collections": Case("a.parquet", lambda _: _of(DEEP)),
    "GeoParquet geometry with four billion points": Case("a.parquet", lambda _: _of(COUNT)),
    "GeoParquet geometry of nothing": Case("a.parquet", lambda _: _of(b"")),
    "GeoParquet geometry of unknown kind": Case("a.parquet", lambda _: _of(struct.pack("<BI", 1, 77))),
    "GeoParquet metadata that is no JSON": Case("a.parquet", lambda _: _file(pa.table({"a": [1]}), "{" * 9000)),
    "GeoParquet metadata of brackets": Case("a.parquet", lambda _: _file(pa.table({"a": [1]}), "[" * 200_000)),
    "GeoParquet metadata of another shape": Case("a.parquet", lambda _: _file(pa.table({"a": [1]}), {"columns": [1]})),
    "GeoParquet whose geometry is not there": Case("a.parquet", lambda _: _file(pa.table({"a": [1]}), _geo())),
    "GeoParquet in a system that is a path": Case("a.parquet", lambda bait: _of(POINT, crs=str(bait.file(".txt")))),
    "GeoParquet in a system that is an address": Case(
        "a.parquet", lambda bait: _of(POINT, crs={"$schema": bait.url, "id": bait.url})
    ),
    "GeoParquet in an encoding that is unknown": Case("a.parquet", lambda _: _of(POINT, encoding="../../x"), REFUSED),
    "GeoParquet columns in columns": Case(
        "a.parquet",
        lambda _: _file(pa.table({"a": pa.array([{"b": {"c": [[[{"d": 1}]]]}}])})),
        None,
        {"outputFormat": "Csv"},
    ),
    "GeoParquet columns called as nothing": Case(
        "a.parquet",
        lambda _: _file(pa.table([[1], [2], [3]], names=["", "__geomill_geometry", 'a"; --'])),
        None,
        {"outputFormat": "Csv"},
    ),
}
