"""Coordinate systems and layers that a request asks for: the result holds them, or the request is refused."""

import json
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from service.errors import Rejection
from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Converted, Pipeline, feature, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters


def points_of(done: Converted) -> list[readers.Point]:
    """The positions of the points in a result."""
    return readers.read_content(done.plan.target.token, done.path).points or []


@pytest.mark.parametrize("epsg", [4979, 4937, 7415, 4258])
async def test_geoparquet_records_every_system_that_was_asked_for(
    pipeline: Pipeline, tmp_path: Path, epsg: int
) -> None:
    """Systems with three axes as well."""
    path = write_geojson(tmp_path / "a.geojson", [point(5, 52, a=1)])
    done = await pipeline.to("GeoParquet", path, target_epsg=epsg)
    metadata = pq.ParquetFile(done.path).metadata.metadata
    assert json.loads(metadata[b"geo"])["columns"]["geometry"]["crs"]["id"] == {"authority": "EPSG", "code": epsg}


PLACES = {
    "beyond the driver's area": (3857, (179.9, 84.9)),
    "in steps of a decimeter": (21781, (7.5, 47.1)),
    "in feet": (2263, (-74.01, 40.7)),
    "with the number of its zone": (4526, (114.1, 34.2)),
}


@pytest.mark.parametrize("place", PLACES)
async def test_mapinfo_keeps_coordinates_of_projections(either: Pipeline, tmp_path: Path, place: str) -> None:
    """Its driver would give coordinates outside of an area of its own those of its edge."""
    epsg, position = PLACES[place]
    path = write_geojson(tmp_path / "a.geojson", [point(*position, a=1)])
    table = await either.to("Csv", path, target_epsg=epsg)
    (exact,) = points_of(table)
    for source, source_epsg, steps in (path, 4326, 0.016), (table.path, epsg, 0.001):
        (written,) = points_of(await either.to("MapInfo", source, source_epsg=source_epsg, target_epsg=epsg))
        assert written == pytest.approx(exact, abs=steps)


async def test_mapinfo_keeps_coordinates_of_a_drawing_in_its_own_scale(either: Pipeline, tmp_path: Path) -> None:
    """A plan of a room is not rounded to the steps of a map of the world, nor cut off at its edge."""
    path = tmp_path / "a.csv"
    for expected in [(0.123456, 0.234567), (5e7, 4e7)], [(0.00123456, 3e-5)]:
        rows = "".join(f"1,{x},{y}\n" for x, y in expected)
        path.write_text(f"n,x,y\n{rows}")
        written = points_of(await either.to("MapInfo", path, keep_coordinates=True))
        widest = max(max(place) for place in expected)
        for place, found in zip(expected, written, strict=True):
            assert found == pytest.approx(place, abs=widest * 1e-8)


async def test_mapinfo_keeps_coordinates_of_a_map_of_the_world(either: Pipeline, tmp_path: Path) -> None:
    """With space around them, its steps were 6 cm, where those of coordinates that are transformed are 2 cm."""
    places = [(-18243094.59, -12462332.19), (17872128.76, 15175737.21), (9574509.14, -1351726.74)]
    path = tmp_path / "a.csv"
    path.write_text("n,x,y\n" + "".join(f"1,{x},{y}\n" for x, y in places))
    written = points_of(await either.to("MapInfo", path, source_epsg=3857, target_epsg=3857))
    for place, found in zip(places, written, strict=True):
        assert found == pytest.approx(place, abs=0.016)


REALS = (0.1, 1e300, -1.5e-7, 123456789.123456789)


async def test_points_that_stay_in_place_are_written_as_the_option_for_rfc_7946_has_them(
    either: Pipeline, converters: Converters
) -> None:
    """Without that option its driver takes less time, but might write something else, as some releases do."""
    places = [(-179, -90), (179, 90), (1e-9, -0.123456789), (5.00000005, 52.1234567)]
    features = [
        point(*place, name="Zoë {1}", real=value, n=1 << 40) for place, value in zip(places, REALS, strict=True)
    ]
    directory = converters.new_directory()
    path = write_geojson(directory / "a.geojson", [*features, feature(None, name="[1]")])
    assert await converters.ogr2ogr(directory, "-f", "GPKG", "a.gpkg", path.name)
    rfc_7946 = ("-unsetFid", "-lco", "RFC7946=YES", "-t_srs", "EPSG:4326")
    assert await converters.ogr2ogr(directory, "-f", "GeoJSON", *rfc_7946, "expected.geojson", "a.gpkg")
    done = await either.to("GeoJson", directory / "a.gpkg")
    assert done.plan.is_in_place
    assert not done.plan.gathers_lines
    assert done.path.read_bytes() == (directory / "expected.geojson").read_bytes()


@pytest.mark.parametrize("output", ["Kml", "Csv", "GeoPackage", "GeoJsonSeq"])
async def test_geojson_of_a_projection_is_not_taken_for_degrees(either: Pipeline, tmp_path: Path, output: str) -> None:
    """A sourceEpsg in degrees contradicts the document; its meters came out as latitudes."""
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::2154"}}
    path = write_geojson(tmp_path / "a.geojson", [point(604344, 6609153, a=1)], crs=crs)
    directory, source = either.receive(path)
    target, request = choose_target(source.format, output), ConversionRequest(output=output, source_epsg=4258)
    async with either.engine.session(either.run, target) as run:
        found = await inspect_source(either.engine, run, source, target, directory, request=request)
        with pytest.raises(Rejection, match="not degrees, which EPSG:4258 requires"):
            plan_conversion(found.source, target, found.facts, request, either.engine.catalogue)


@pytest.mark.parametrize("code", [4258, 4979, 8360])
async def test_meters_are_not_taken_for_degrees_of_any_system(pipeline: Pipeline, tmp_path: Path, code: int) -> None:
    """Those other than WGS 84, and those with heights, were believed, and nothing was told."""
    crs = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{code}"}}
    path = write_geojson(tmp_path / "a.geojson", [point(604344, 6609153, 5, a=1)], crs=crs)
    directory, source = pipeline.receive(path)
    target, request = choose_target(source.format, "Csv"), ConversionRequest(output="Csv")
    async with pipeline.engine.session(pipeline.run, target) as run:
        found = await inspect_source(pipeline.engine, run, source, target, directory, request=request)
        with pytest.raises(Rejection, match=f"not degrees, which EPSG:{code} requires"):
            plan_conversion(found.source, target, found.facts, request, pipeline.engine.catalogue)


async def test_coordinates_that_mapinfo_cannot_store_are_refused(either: Pipeline, tmp_path: Path) -> None:
    """They came out as others; what the error advises works."""
    path = write_geojson(tmp_path / "a.geojson", [point(10, 50, a=1), point(10, 89.9, a=2)])
    with pytest.raises(Rejection, match=r"larger than MapInfo TAB can store\. Choose another targetEpsg, such as 4326"):
        await either.to("MapInfo", path, target_epsg=3857)
    assert len(points_of(await either.to("MapInfo", path))) == 2
    kept = await either.to("GeoPackage", path, target_epsg=3857)
    assert readers.read_content("gpkg", kept.path).features == 2


TYPED = """<kml xmlns="http://www.opengis.net/kml/2.2"><Document>
<Schema name="s" id="s"><SimpleField name="flag" type="bool"/><SimpleField name="length" type="double"/></Schema>
<Placemark><ExtendedData><SchemaData schemaUrl="#s"><SimpleData name="flag">{}</SimpleData>
<SimpleData name="length">{}</SimpleData></SchemaData></ExtendedData><Point><coordinates>1,2</coordinates></Point>
</Placemark></Document></kml>"""


async def test_values_that_do_not_fit_the_type_that_kml_declares_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Older drivers know booleans only as 0 and 1."""
    path = tmp_path / "a.kml"
    path.write_text(TYPED.format("true", "1,5"))
    done = await either.to("Csv", path)
    (row,) = readers.table(done.path)
    told = [
        warning.partition(". ")[0] for warning in done.plan.warnings if "as the file or its format declares" in warning
    ]
    assert told[-1] == "Values of 'length' were read as numbers, as the file or its format declares: '1,5' became 1"
    flag = "Values of 'flag' were read as numbers, as the file or its format declares: 'true' became 0"
    assert told[:-1] == ([] if row["flag"] == "1" else [flag])
    path.write_text(TYPED.format("1", "1.5"))
    assert (await either.to("GeoPackage", path)).plan.warnings == ()


def esri(tmp_path: Path, places: Sequence[Sequence[float]], **members: object) -> Path:
    """Esri JSON of one line through `places`."""
    path = tmp_path / "a.json"
    line = {"attributes": {"n": 1}, "geometry": {"paths": [places]}}
    fields = [{"name": "n", "type": "esriFieldTypeInteger"}]
    path.write_text(
        json.dumps({"geometryType": "esriGeometryPolyline", "fields": fields, "features": [line], **members})
    )
    return path


def values_of_corners(done: Converted) -> list[int]:
    """How many values each corner of the only line of a table has."""
    (line,) = re.findall(r"\(([^()]+)\)", done.path.read_text())
    return [len(corner.split()) for corner in line.split(",")]


@pytest.mark.parametrize("wkid", [4326, 104115])
async def test_measures_of_esri_json_never_become_elevations(either: Pipeline, tmp_path: Path, wkid: int) -> None:
    """Those beside elevations are kept; the driver would take others for elevations."""
    system = {"wkid": wkid}
    path = esri(tmp_path, [[1, 2, 7], [3, 4, 8]], hasM=True, spatialReference=system)
    done = await either.to("Csv", path)
    assert values_of_corners(done) == [2, 2]
    assert sum("Measures (M) were left out" in warning for warning in done.output.warnings) == 1
    path = esri(tmp_path, [[1, 2, 7, 5], [3, 4, 8, 6]], hasM=True, hasZ=True, spatialReference=system)
    done = await either.to("Csv", path)
    assert values_of_corners(done) == [4, 4]
    assert not any("Measures" in warning for warning in done.output.warnings)


async def test_the_remedy_for_coordinates_that_are_not_degrees_works(pipeline: Pipeline, tmp_path: Path) -> None:
    """It depends on what was sent, on what the file records, and on what the target can hold."""
    recorded = (
        await pipeline.to("GeoPackage", write_geojson(tmp_path / "a.geojson", [point(8, 47, a=1)]), target_epsg=2056)
    ).path
    with pytest.raises(
        Rejection, match="Send no sourceEpsg, because the file records its system, EPSG:2056; or send"
    ) as refusal:
        await pipeline.to("Csv", recorded, source_epsg=4326, keep_coordinates=True)
    assert "keepCoordinates" not in str(refusal.value)
    await pipeline.to("Csv", recorded)
    table = tmp_path / "t.csv"
    table.write_text("n,x,y\n1,2600000,1200000\n")
    with pytest.raises(Rejection, match="send keepCoordinates=true instead of sourceEpsg to write"):
        await pipeline.to("GeoPackage", table, source_epsg=4326, keep_coordinates=True)
    await pipeline.to("GeoPackage", table, keep_coordinates=True)
    for wishes in {}, {"source_epsg": 4326}:
        with pytest.raises(Rejection, match="sourceEpsg") as refusal:
            await pipeline.to("Kml", table, **wishes)
        assert "keepCoordinates" not in str(refusal.value)
    await pipeline.to("Kml", table, source_epsg=2056)


@pytest.mark.parametrize("output", ["GeoPackage", "SpatiaLite", "FlatGeobuf", "GeoParquet"])
async def test_no_part_of_an_area_that_crosses_the_date_line_becomes_a_hole(
    either: Pipeline, tmp_path: Path, output: str
) -> None:
    """GDAL 3.6 cuts it there, and made a hole of the second part, because all areas were declared to have one part."""
    path = tmp_path / "a.csv"
    ring = "1900000 5500000,2300000 5500000,2300000 5900000,1900000 5900000,1900000 5500000"
    path.write_text(f'WKT,n\n"POLYGON (({ring}))",1\n')
    made = await either.to(output, path, source_epsg=2193)
    done = await either.to("Csv", made.path)
    (row,) = readers.table(done.path)
    assert row["WKT"].startswith("MULTIPOLYGON (((") or row["WKT"].count("(") == len("((")


async def test_areas_elsewhere_keep_their_declared_type(either: Pipeline, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('WKT,n\n"POLYGON ((500000 5500000,600000 5500000,600000 5600000,500000 5500000))",1\n')
    done = await either.to("GeoPackage", path, source_epsg=25832)
    with closing(sqlite3.connect(done.path)) as connection:
        assert connection.execute("SELECT geometry_type_name FROM gpkg_geometry_columns").fetchone() == ("POLYGON",)
