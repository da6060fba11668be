"""Parquet files without geometry of their own, as pandas, polars and DuckDB write them."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

PLACES = {"lat": [47.3, -33.0], "lon": [8.5, 151.0]}
VALUES = {
    "i8": pa.array([-128, None], pa.int8()),
    "u8": pa.array([255, None], pa.uint8()),
    "i16": pa.array([-32768, None], pa.int16()),
    "u16": pa.array([65535, None], pa.uint16()),
    "u32": pa.array([4294967295, None], pa.uint32()),
    "f16": pa.array([np.float16(0.5), None], pa.float16()),
    "f32": pa.array([0.1, None], pa.float32()),
    "decimal": pa.array([Decimal("47.3"), None], pa.decimal128(4, 1)),
}


@pytest.mark.parametrize("places", [PLACES, {}])
async def test_numbers_of_all_sizes_stay_numbers(
    pipeline: Pipeline, tmp_path: Path, places: dict[str, list[float]]
) -> None:
    """Small integers and numbers of single precision arrive as the numbers that they are, also beside coordinates."""
    pq.write_table(pa.table({**places, **VALUES}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoJson", tmp_path / "a.parquet", source_epsg=4326 if places else None)
    first, second = (feature["properties"] for feature in readers.geojson(done.path))
    assert json.loads(json.dumps(first)) == {
        "i8": -128, "u8": 255, "i16": -32768, "u16": 65535, "u32": 4294967295, "f16": 0.5, "f32": 0.1, "decimal": 47.3
    }  # fmt: skip
    assert second == dict.fromkeys(VALUES)
    assert done.facts.warnings == ()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
async def test_empty_texts_of_tables_that_become_missing_are_counted(
    pipeline: Pipeline, tmp_path: Path, kind: pa.DataType
) -> None:
    """A warning names the columns with empty texts, and how many there are."""
    texts = pa.array(["", "x"]).cast(kind)
    pq.write_table(pa.table({**PLACES, "text": texts}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet", source_epsg=4326)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["text"] for row in rows] == [None, "x"]
    (told,) = done.facts.warnings
    assert "1 value of 'text' became missing" in told


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
async def test_infinite_numbers_of_tables_that_become_missing_are_counted(
    pipeline: Pipeline, tmp_path: Path, kind: pa.DataType
) -> None:
    """They became empty without a word."""
    numbers = pa.array([float("inf"), 1.5]).cast(kind)
    pq.write_table(pa.table({**PLACES, "number": numbers}), tmp_path / "a.parquet")
    done = await pipeline.to("GeoPackage", tmp_path / "a.parquet", source_epsg=4326)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["number"] for row in rows] == [None, 1.5]
    (told,) = done.facts.warnings
    assert "1 value of 'number' became missing" in told
