"""Columns of types that a target does not have: what becomes of their values is told with the number of them."""

import datetime as dt
import json
import sqlite3
import struct
import zipfile
from collections.abc import Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

POINT = struct.pack("<BIdd", 1, 1, 8.5, 47.25)
LARGEST_SIGNED = 2**63 - 1
TYPED = ["GeoPackage", "SpatiaLite", "OpenFileGdb", "FlatGeobuf", "MapInfo", "Xlsx", "Ods", "Shapefile"]
FORMER = {
    "lists, structures and maps": pa.array([[1, 2], None], pa.list_(pa.int64())),
    "times of day": pa.array([dt.time(1, 2, 3), None], pa.time32("s")),
    "durations": pa.array([1500, None], pa.duration("ms")),
    "integers beyond": pa.array([LARGEST_SIGNED + 1, None], pa.uint64()),
    "decimal numbers": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
}
"""By the words of what is told: a column of a type that is told of, with one value."""


def parquet(path: Path, values: pa.Array, *, has_places: bool = True) -> Path:
    """A file with the column `v` and perhaps points."""
    column = {"encoding": "WKB", "geometry_types": ["Point"]}
    geo = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pa.table({"v": values, **({"geometry": [POINT, POINT]} if has_places else {})})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)} if has_places else {}), path)
    return path


def told(warnings: tuple[str, ...], words: str) -> int:
    """How many warnings tell with these words of one value of the column."""
    return sum(words in warning and "1 value of 'v'" in warning for warning in warnings)


@pytest.mark.parametrize("words", FORMER)
@pytest.mark.parametrize("has_places", [True, False])
async def test_types_of_parquet_that_a_database_lacks_are_told(
    either: Pipeline, tmp_path: Path, words: str, *, has_places: bool
) -> None:
    """They became texts or floating-point numbers without a word."""
    path = parquet(tmp_path / "a.parquet", FORMER[words], has_places=has_places)
    assert told((await either.to("GeoPackage", path)).output.warnings, words) == 1


@pytest.mark.parametrize("target", TYPED)
async def test_every_target_with_types_tells_of_durations(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """The table of formats names them for each."""
    done = await pipeline.to(target, parquet(tmp_path / "a.parquet", FORMER["durations"]))
    assert told(done.output.warnings, "durations") == 1


@pytest.mark.parametrize("target", ["GeoJson", "GeoJsonSeq"])
async def test_large_numbers_without_a_sign_are_told_of_json(either: Pipeline, tmp_path: Path, target: str) -> None:
    """It tells texts from numbers."""
    done = await either.to(target, parquet(tmp_path / "a.parquet", FORMER["integers beyond"]))
    assert told(done.output.warnings, "integers beyond") == 1


@pytest.mark.parametrize("has_places", [True, False])
async def test_numbers_without_a_sign_stay_numbers_if_they_fit(
    pipeline: Pipeline, tmp_path: Path, *, has_places: bool
) -> None:
    """All of them became texts."""
    path = parquet(tmp_path / "a.parquet", pa.array([LARGEST_SIGNED, None], pa.uint64()), has_places=has_places)
    done = await pipeline.to("GeoPackage", path)
    ((_, rows),) = readers.geopackage(done.path).items()
    assert [row["v"] for row in rows] == [LARGEST_SIGNED, None]
    assert done.output.warnings == ()


@pytest.mark.parametrize("target", ["OpenFileGdb", "Csv", "Gpx", "Kml"])
async def test_true_and_false_as_numbers_are_told(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """Where the target has no such type in any release of GDAL."""
    done = await pipeline.to(target, parquet(tmp_path / "a.parquet", pa.array([True, None])))
    assert told(done.output.warnings, "true and false") == 1


async def test_times_of_day_of_databases_that_become_texts_are_told(either: Pipeline, tmp_path: Path) -> None:
    """A column of texts with the same name, in another table, is not, nor is one with other texts among them."""
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v TIME)")
        connection.execute("INSERT INTO t VALUES (1, '01:02:03')")
        connection.execute("CREATE TABLE u AS SELECT k, k || ' texts' AS v FROM t")
        connection.execute("CREATE TABLE w (k TEXT, v TIME)")
        connection.executemany("INSERT INTO w VALUES ('1', ?)", [("01:02:03",), ("soon",)])
        connection.commit()
    done = await either.to("GeoPackage", path)
    assert told(done.output.warnings, "times of day") == 1


@pytest.mark.parametrize("ends", [(".mif", ".mid"), (".tab", ".dat", ".map", ".id")])
async def test_times_of_day_of_mapinfo_that_become_texts_are_told(
    either: Pipeline, tmp_path: Path, ends: Sequence[str], converters: Converters
) -> None:
    """The driver that writes the work file does not say so in every release."""
    directory = converters.new_directory()
    write_geojson(directory / "b.geojson", [point(1, 2, v="01:02:03", w="noon"), point(1, 2)])
    assert await converters.ogr2ogr(directory, "-f", "MapInfo File", f"a{ends[0]}", "b.geojson")
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for end in ends:
            archive.write(directory / f"a{end}", f"a{end}")
    done = await either.to("GeoPackage", path)
    assert told(done.output.warnings, "times of day") == 1


async def test_repeated_elements_of_gml_that_become_lists_are_told(either: Pipeline, tmp_path: Path) -> None:
    """As texts of JSON, in every target that is not JSON."""
    path = tmp_path / "a.gml"
    path.write_text(
        '<o:FeatureCollection xmlns:o="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">'
        "<gml:featureMember><o:t><o:v>x</o:v><o:v>y</o:v><o:n>1</o:n></o:t></gml:featureMember></o:FeatureCollection>"
    )
    assert told((await either.to("GeoPackage", path)).output.warnings, "lists") == 1
    assert told((await either.to("GeoJson", path)).output.warnings, "became texts") == 0


async def test_logical_columns_of_shapefiles_are_told_where_they_are_numbers(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """The type of the column is the twelfth byte of its description."""
    wanted = ConversionRequest(output="Shapefile")
    done = await pipeline.convert(parquet(tmp_path / "a.parquet", pa.array([True, None])), wanted, verifies=True)
    with zipfile.ZipFile(done.path) as archive:
        is_number = archive.read("a.dbf")[32 + 11 : 32 + 12] == b"N"
    assert told(done.differences, "true and false") == is_number


async def test_logical_columns_of_tables_of_mapinfo_are_told_where_they_are_numbers(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """The .tab names the types of its columns."""
    wanted = ConversionRequest(output="MapInfo")
    done = await pipeline.convert(parquet(tmp_path / "a.parquet", pa.array([True, None])), wanted, verifies=True)
    with zipfile.ZipFile(done.path) as archive:
        is_number = b"v Integer" in archive.read("a.tab")
    assert told(done.differences, "true and false") == is_number


RESERVED = ("ogc_fid", "fid", "rowid", "geometry", "shape", "objectid", "the_geom")


@pytest.mark.parametrize("names", [RESERVED, tuple(map(str.upper, RESERVED))])
@pytest.mark.parametrize("target", [target for target in TYPED if target not in {"Xlsx", "Ods"}])
async def test_columns_named_as_those_that_databases_add_keep_their_values(
    pipeline: Pipeline, tmp_path: Path, target: str, names: tuple[str, ...]
) -> None:
    """Texts and numbers; another name is told."""
    rows = [
        {name: number + at if at % 2 else f"{name} {number}" for at, name in enumerate(names)} for number in (71, 92)
    ]
    places = [feature(geometry("Point", [1, 2]), **row) for row in rows]
    done = await pipeline.to(target, write_geojson(tmp_path / "a.geojson", places))
    back = readers.table((await pipeline.to("Csv", done.path)).path)
    for name in names:
        (found,) = [
            column for column in back[0] if [row[column] for row in back] == [str(row[name]) for row in rows]
        ] or [""]
        assert found == name or f"{name!r} to {found!r}" in str(done.output.warnings), (name, back)


@pytest.mark.parametrize("output", ["GeoPackage", "Csv", "FlatGeobuf"])
async def test_objects_and_arrays_of_geojson_that_become_texts_are_told(
    either: Pipeline, tmp_path: Path, output: str
) -> None:
    """Also of columns with other values beside them, which are not counted."""
    place = geometry("Point", [1, 2])
    path = write_geojson(tmp_path / "a.geojson", [feature(place, v={"a": [1]}), feature(place, v="x")])
    directory, source = either.receive(path)
    target = choose_target(source.format, output)
    look = await inspect_source(either.engine, either.run, source, target, directory)
    plan = plan_conversion(look.source, target, look.facts, ConversionRequest(output=output), either.engine.catalogue)
    assert told(plan.warnings, "lists") == 1
