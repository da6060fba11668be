"""The pipeline on real files: GeoJSON and Shapefile into the common targets, checked by independent readers."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from sandbox.command import Command
from sandbox.verdict import Verdict
from service.engine.diagnostics import EngineDefect
from service.errors import Rejection
from service.formats.request import ConversionRequest
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, feature, geometry, write_geojson
from tests.support.converters import Converters

DEFAULT = ConversionRequest()
POINTS = [
    feature(geometry("Point", [13.4, 52.5]), name="Köln 日本", n=1, ratio=0.5),
    feature(geometry("Point", [13.5, 52.6]), name="b", n=2, ratio=1.5),
]
SQUARE = [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return write_geojson(tmp_path / "my places.geojson", POINTS)


def test_the_version_is_what_the_converter_says(pipeline: Pipeline) -> None:
    """Wherever it has been found."""
    host = pipeline.engine.capabilities
    said = subprocess.run([host.ogr2ogr, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"GDAL {host.version}")


async def test_geojson_becomes_a_shapefile_by_default(pipeline: Pipeline, points: Path) -> None:
    """Without `outputFormat`, GeoJSON becomes a zipped shapefile with names, values, encoding and system kept."""
    done = await pipeline.convert(points, DEFAULT)
    found = readers.shapefiles(done.path)["my_places"]
    assert found.shapes == [1, 1]
    assert [record["name"] for record in found.records] == ["Köln 日本", "b"]
    assert found.encoding == "UTF-8"
    assert "WGS_1984" in found.projection
    assert (done.facts.feature_count, done.facts.geometry_type) == (2, "Point")
    assert done.path.name == "my_places.zip"
    assert done.output.output_epsg == 4326


async def test_a_shapefile_without_its_system_is_no_success(converters: Converters, points: Path) -> None:
    """A converter that cannot look the system up omits the .prj and exits with code 0."""

    async def run_and_lose_the_system(command: Command) -> Verdict:
        verdict = await converters.run(command)
        for path in (command.directory / "out").rglob("*.prj"):
            path.unlink()
        return verdict

    with pytest.raises(EngineDefect, match="EPSG:4326"):
        await Pipeline(converters, run_and_lose_the_system).convert(points, DEFAULT)


async def test_a_result_without_a_byte_is_no_success(converters: Converters, points: Path) -> None:
    """A driver that cannot write, as on a full disk, may end with code 0."""

    async def run_and_lose_what_was_written(command: Command) -> Verdict:
        verdict = await converters.run(command)
        for path in (command.directory / "out").iterdir():
            os.truncate(path, 0)
        return verdict

    with pytest.raises(Rejection, match="gave no result"):
        await Pipeline(converters, run_and_lose_what_was_written).to("Csv", points)


async def test_a_shapefile_becomes_geojson_by_default(pipeline: Pipeline, points: Path) -> None:
    """After a round trip, the features are equal, including text in all languages."""
    there = await pipeline.convert(points, DEFAULT)
    back = await pipeline.convert(there.path, DEFAULT)
    assert back.output.extension == ".geojson"
    assert [(row["properties"], row["geometry"]) for row in readers.geojson(back.path)] == [
        (row["properties"], row["geometry"]) for row in POINTS
    ]


async def test_geopackage(pipeline: Pipeline, points: Path) -> None:
    """A GeoPackage is valid and holds the layer under the upload's name."""
    rows = readers.geopackage((await pipeline.to("geopackage", points)).path)
    assert [(row["name"], row["n"], row["ratio"]) for row in rows["my_places"]] == [
        ("Köln 日本", 1, 0.5),
        ("b", 2, 1.5),
    ]


async def test_csv_has_coordinates_in_columns(pipeline: Pipeline, points: Path) -> None:
    """Points become X and Y."""
    rows = readers.table((await pipeline.to("CSV", points)).path)
    assert rows[0] == {"X": "13.4", "Y": "52.5", "name": "Köln 日本", "n": "1", "ratio": "0.5"}


async def test_kml_has_a_placemark_per_feature(pipeline: Pipeline, points: Path) -> None:
    """KML holds every feature with its name."""
    found = readers.placemarks((await pipeline.to("kml", points)).path)
    assert [mark.findtext(f"{readers.KML}name") for mark in found] == ["Köln 日本", "b"]


async def test_flatgeobuf(pipeline: Pipeline, points: Path) -> None:
    """A FlatGeobuf file has its magic bytes and converts back to the same features."""
    there = await pipeline.to("FlatGeobuf", points)
    assert there.path.read_bytes()[:4] == b"fgb\x03"
    back = await pipeline.to("GeoJson", there.path)
    assert sorted(str(row["properties"]) for row in readers.geojson(back.path)) == sorted(
        str(row["properties"]) for row in POINTS
    )


async def test_mixed_families_are_split_so_that_nothing_is_lost(pipeline: Pipeline, tmp_path: Path) -> None:
    """One shapefile per family, collections split among them, features without geometry kept, all of it reported."""
    mixed = write_geojson(
        tmp_path / "mixed.geojson",
        [
            feature(geometry("Point", [1, 2]), a=1),
            feature(geometry("LineString", [[0, 0], [1, 1]]), a=2),
            feature(geometry("Polygon", SQUARE), a=3),
            feature(geometry("Polygon", SQUARE), a=4),
            feature(geometry("Polygon", SQUARE), a=7),
            feature(
                {
                    "type": "GeometryCollection",
                    "geometries": [geometry("Point", [5, 6]), geometry("LineString", [[5, 6], [7, 8]])],
                },
                a=5,
            ),
            feature(None, a=6),
        ],
    )
    done = await pipeline.to("Shapefile", mixed)
    found = readers.shapefiles(done.path)
    assert {name: sorted(record["a"] for record in shape.records) for name, shape in found.items()} == {
        "mixed_point": ["1", "5"],
        "mixed_line": ["2", "5"],
        "mixed_polygon": ["3", "4", "6", "7"],
    }
    assert found["mixed_polygon"].shapes.count(0) == 1
    assert any("mixed_point (2)" in warning for warning in done.output.warnings)


async def test_long_column_names_are_renamed_as_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """No column is lost to a collision, and the warnings list the new names."""
    rows = [feature(geometry("Point", [1, 2]), population_2020=1, population_2021=2, 人口密度統計=3)]
    done = await pipeline.to("Shapefile", write_geojson(tmp_path / "p.geojson", rows))
    record = readers.shapefiles(done.path)["p"].records[0]
    assert record == {"population": "1", "populati_1": "2", "人口密": "3"}
    assert any("'population_2021' to 'populati_1'" in warning for warning in done.output.warnings)


async def test_reprojection(pipeline: Pipeline, points: Path) -> None:
    """The coordinates and the .prj are in the target system."""
    done = await pipeline.to("Shapefile", points, target_epsg=25833)
    assert "UTM" in readers.shapefiles(done.path)["my_places"].projection
    assert done.output.output_epsg == 25833


async def test_points_outside_the_target_system_fail_the_file(pipeline: Pipeline, tmp_path: Path) -> None:
    """A coordinate that cannot be reprojected is an error, never a missing feature."""
    odd = write_geojson(tmp_path / "odd.geojson", [feature(geometry("Point", [0, 91]), a=1)])
    with pytest.raises(Rejection, match="not degrees"):
        await pipeline.to("GeoPackage", odd, target_epsg=3857)


async def test_features_that_cannot_be_reprojected_are_counted(pipeline: Pipeline, tmp_path: Path) -> None:
    """The file fails with their number, and none disappears."""
    rows = [feature(geometry("Point", [0, lat]), a=1) for lat in (0, 45, -90, 10, -90, 50)]
    with pytest.raises(Rejection, match=r"2 of 6 features cannot be transformed to EPSG:2154"):
        await pipeline.to("GeoPackage", write_geojson(tmp_path / "poles.geojson", rows), target_epsg=2154)


async def test_projected_numbers_in_geojson_ask_for_source_epsg(pipeline: Pipeline, tmp_path: Path) -> None:
    """Numbers that are not degrees are refused with the remedy, and convert with it."""
    metres = write_geojson(tmp_path / "metres.geojson", [feature(geometry("Point", [392000.0, 5820000.0]), a=1)])
    with pytest.raises(Rejection, match="sourceEpsg"):
        await pipeline.to("GeoJsonSeq", metres)
    done = await pipeline.to("Shapefile", metres, source_epsg=25833)
    assert done.output.output_epsg == 4326


@pytest.mark.parametrize("code", [5783, 6360])
async def test_heights_alone_are_no_system_of_positions(pipeline: Pipeline, tmp_path: Path, code: int) -> None:
    """The converter would exchange the coordinates."""
    named = {"type": "name", "properties": {"name": f"EPSG:{code}"}}
    path = write_geojson(tmp_path / "a.geojson", [feature(geometry("Point", [10, 50, 3]), a=1)], crs=named)
    with pytest.raises(Rejection, match=f"EPSG:{code}, which does not say where on the Earth"):
        await pipeline.to("Csv", path)
    done = await pipeline.to("Csv", path, keep_coordinates=True)
    assert "POINT Z (10 50 3)" in done.path.read_text(encoding="utf-8")


async def test_a_shapefile_without_prj_needs_source_epsg(pipeline: Pipeline, points: Path, tmp_path: Path) -> None:
    """An unknown system is refused rather than guessed."""
    there = await pipeline.convert(points, DEFAULT)
    bare = strip(there.path, tmp_path / "bare.zip", ".prj")
    with pytest.raises(Rejection, match="sourceEpsg"):
        await pipeline.to("GeoJson", bare)
    assert len(readers.geojson((await pipeline.to("GeoJson", bare, source_epsg=4326)).path)) == 2


async def test_a_prj_may_be_in_any_encoding(either: Pipeline, points: Path, tmp_path: Path) -> None:
    """Letters of Latin-1 in the name of a system were a defect, even where `sourceEpsg` says what it is."""
    there = await either.convert(points, DEFAULT)
    named = tmp_path / "named.zip"
    with zipfile.ZipFile(there.path) as former, zipfile.ZipFile(named, "w") as archive:
        for name in former.namelist():
            archive.writestr(name, former.read(name).replace(b'"GCS_WGS_1984"', b'"Syst\xe8me"'))
    assert len(readers.geojson((await either.to("GeoJson", named, source_epsg=4326)).path)) == 2


def strip(path: Path, target: Path, extension: str) -> Path:
    with zipfile.ZipFile(path) as full, zipfile.ZipFile(target, "w") as less:
        for name in full.namelist():
            if not name.endswith(extension):
                less.writestr(name, full.read(name))
    return target


async def test_damaged_json_is_refused_in_plain_words(pipeline: Pipeline, tmp_path: Path) -> None:
    """No message of GDAL's shows."""
    broken = tmp_path / "broken.geojson"
    broken.write_text('{"type": "FeatureCollection", "features": [{"type": "Feature"')
    with pytest.raises(Rejection, match="not a valid GeoJSON file") as caught:
        await pipeline.to("Kml", broken)
    assert "ERROR" not in caught.value.message


async def test_a_table_goes_into_every_target_that_holds_tables(pipeline: Pipeline, tmp_path: Path) -> None:
    """Features without geometry keep their attributes, and outputEpsg is null."""
    rows = write_geojson(tmp_path / "t.geojson", [feature(None, a=1), feature(None, a=2)])
    done = await pipeline.to("Shapefile", rows)
    found = readers.shapefiles(done.path)["t"]
    assert found.shapes == [0, 0]
    assert [record["a"] for record in found.records] == ["1", "2"]
    assert done.output.output_epsg is None
    assert done.facts.geometry_type == "None"
