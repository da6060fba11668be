"""Inputs of many layers."""

import re
import sqlite3
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from contextlib import closing
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from sandbox.command import Command
from sandbox.verdict import Verdict
from service.engine.capabilities import Capabilities
from service.engine.diagnostics import TOO_MANY_LAYERS
from service.engine.environment import converter_environment
from service.errors import LayerCount, MultipleLayers, Rejection
from service.formats.facts import MAX_LAYERS
from service.formats.layers import LISTED
from service.formats.plan import MAX_DATASETS
from service.formats.registry import find_output
from service.formats.request import ConversionRequest
from service.usecases.inspect_source import inspect_source
from tests.hostile.databases import CONTENTS
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import line, point
from tests.support.converters import Converters

SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PLACEMARK = "<Placemark><name>{name}</name><Point><coordinates>{x},1</coordinates></Point></Placemark>"
GPX = """<?xml version="1.0"?><gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1">
<wpt lat="1" lon="2"><ele>5</ele><name>Rast</name></wpt>
<trk><name>Weg</name><trkseg><trkpt lat="1" lon="2"><ele>1</ele></trkpt><trkpt lat="2" lon="3"><ele>2</ele></trkpt>
</trkseg></trk></gpx>"""


def kml(*folders: str) -> str:
    listed = "".join(
        f"<Folder><name>{name}</name>{PLACEMARK.format(name=f'in {number}', x=number)}</Folder>"
        for number, name in enumerate(folders)
    )
    return f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{listed}<Folder><name>e</name></Folder></Document></kml>'


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    path = tmp_path / "tour.kml"
    path.write_text(kml("Städte", "(b) roads"), encoding="utf-8")
    return path


async def test_several_layers_into_a_single_layer_target(pipeline: Pipeline, folders: Path) -> None:
    """The response lists every layer with its count, except empty ones, whatever the names."""
    with pytest.raises(MultipleLayers) as caught:
        await pipeline.to("GeoJson", folders)
    assert caught.value.target_format == "geojson"
    assert caught.value.layers == (LayerCount("Städte", 1), LayerCount("(b) roads", 1))


async def test_of_layers_that_are_all_empty_those_left_out_are_told(either: Pipeline, tmp_path: Path) -> None:
    """One of them becomes an empty result."""
    path = tmp_path / "a.kml"
    path.write_text(kml().replace("</Document>", "<Folder><name>f</name></Folder></Document>"))
    done = await either.to("GeoPackage", path)
    assert done.facts.feature_count == 0
    assert done.output.warnings == ("The layer 'f' is empty and was left out.",)


async def test_empty_layers_beyond_those_that_are_named_are_counted(either: Pipeline, tmp_path: Path) -> None:
    """None vanishes without a word."""
    path = tmp_path / "a.kml"
    empty = "".join(f"<Folder><name>f{number}</name></Folder>" for number in range(LISTED + 2))
    path.write_text(kml("full").replace("</Document>", f"{empty}</Document>"))
    done = await either.to("GeoPackage", path)
    assert done.output.warnings[-2:] == (
        f"The layer 'f{LISTED - 2}' is empty and was left out.",
        "Further layers (3) are empty and were left out.",
    )


async def test_one_layer_can_be_chosen(pipeline: Pipeline, folders: Path) -> None:
    """By its name."""
    done = await pipeline.to("GeoJson", folders, layer="(b) roads")
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"Name": "in 1"}]
    assert done.facts.feature_count == 2


async def test_a_layer_s_name_is_only_a_name(pipeline: Pipeline, tmp_path: Path) -> None:
    """Whatever it contains, and whichever files would direct the converter."""
    named = ['a"><SrcDataSource>/etc/passwd</SrcDataSource>', "b & <c>"]
    path = tmp_path / "tour.kml"
    path.write_text(kml(*(escape(name) for name in named)), encoding="utf-8")
    done = await pipeline.to("Xlsx", path)
    with zipfile.ZipFile(done.path) as workbook:
        sheets = ET.fromstring(workbook.read("xl/workbook.xml")).iter(f"{{{SPREADSHEET}}}sheet")  # noqa: S314 -- of our own making
    assert [sheet.get("name") for sheet in sheets] == [dataset.name for dataset in done.plan.datasets]
    assert [dataset.layer.name for dataset in done.plan.datasets] == named


async def test_an_unknown_layer_is_refused_with_the_known_ones(pipeline: Pipeline, folders: Path) -> None:
    """The message lists the choices."""
    with pytest.raises(Rejection, match=r"'rails'.*Städte, \(b\) roads"):
        await pipeline.to("GeoJson", folders, layer="rails")


@pytest.mark.parametrize(
    "output", ["GeoPackage", "SpatiaLite", "Kml", "Gml", "Xlsx", "Shapefile", "OpenFileGdb", "MapInfo"]
)
async def test_many_layer_targets_keep_all(pipeline: Pipeline, folders: Path, output: str) -> None:
    """A warning reports the renamed layer and the empty one."""
    if output == "Kml":
        folders = (await pipeline.to("GeoPackage", folders)).path
    done = await pipeline.to(output, folders)
    found = readers.read_content(done.plan.target.token, done.path)
    if output != "Xlsx":
        assert found.features == 2
    assert len(done.plan.datasets) == 2
    if output != "Kml":
        assert any("b_roads" in warning for warning in done.output.warnings)
        assert any("'e' is empty" in warning for warning in done.output.warnings)


async def test_the_derived_layers_of_gpx_do_not_count(pipeline: Pipeline, tmp_path: Path) -> None:
    """Waypoints and tracks are two layers; track points are not counted."""
    path = tmp_path / "tour.gpx"
    path.write_text(GPX)
    with pytest.raises(MultipleLayers) as caught:
        await pipeline.to("GeoJson", path)
    assert {(layer.layer, layer.features) for layer in caught.value.layers} == {("waypoints", 1), ("tracks", 1)}
    done = await pipeline.to("GeoPackage", path)
    assert done.facts.feature_count == 2
    assert {"waypoints", "tracks", "track_points"} == set(readers.geopackage(done.path))


async def test_gpx_with_only_a_track_has_one_layer(pipeline: Pipeline, tmp_path: Path) -> None:
    """It converts to a single-layer target, with elevations and name kept and nothing added."""
    path = tmp_path / "tour.gpx"
    path.write_text(GPX.replace(GPX[GPX.index("<wpt") : GPX.index("<trk>")], ""))
    (found,) = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert found["properties"] == {"name": "Weg"}
    assert found["geometry"] == {"type": "MultiLineString", "coordinates": [[[2.0, 1.0, 1.0], [3.0, 2.0, 2.0]]]}


async def test_several_shapefiles_are_layers(pipeline: Pipeline, tmp_path: Path) -> None:
    """Each under its own name."""
    archives = [
        (await pipeline.to("Shapefile", write_geojson(tmp_path / f"{name}.geojson", [row]))).path
        for name, row in (("roads", line(a=1)), ("towns", point(1, 2, a=2)))
    ]
    together = tmp_path / "both.zip"
    with zipfile.ZipFile(together, "w") as target:
        for path in archives:
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    target.writestr(f"Daten/{name}", archive.read(name))
    done = await pipeline.to("GeoPackage", together)
    assert {name: len(rows) for name, rows in readers.geopackage(done.path).items()} == {"roads": 1, "towns": 1}


@pytest.mark.parametrize("layer", ["two roads", "two_roads", "Two Roads"])
async def test_shapefiles_with_blanks_in_their_names_are_renamed_and_told(
    pipeline: Pipeline, tmp_path: Path, layer: str
) -> None:
    """They are found in a request by either name."""
    single = (await pipeline.to("Shapefile", write_geojson(tmp_path / "a.geojson", [line(a=1)]))).path
    together = tmp_path / "both.zip"
    with zipfile.ZipFile(together, "w") as target, zipfile.ZipFile(single) as archive:
        for name in archive.namelist():
            for stem in ("two roads", "towns"):
                target.writestr(f"{stem}{Path(name).suffix}", archive.read(name))
    done = await pipeline.to("GeoPackage", together)
    assert done.output.warnings == ("Layers were renamed: 'two roads' to 'two_roads'.",)
    assert sorted(readers.geopackage(done.path)) == ["towns", "two_roads"]
    assert (await pipeline.to("GeoJson", together, layer=layer)).output.warnings == ()


async def test_a_table_beside_a_spatial_layer_is_left_out_of_single_layer_targets(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """It does not count as a second layer, and a warning reports it."""
    done = await pipeline.to("GeoPackage", write_geojson(tmp_path / "towns.geojson", [point(1, 2, a=2)]))
    with closing(sqlite3.connect(done.path)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        connection.execute("INSERT INTO notes VALUES (1, 'x')")
        connection.execute("INSERT INTO gpkg_contents (table_name, data_type) VALUES ('notes', 'attributes')")
        connection.commit()
    back = await pipeline.to("GeoJson", done.path)
    assert len(readers.geojson(back.path)) == 1
    assert any("'notes'" in warning for warning in back.output.warnings)
    kept = await pipeline.to("SpatiaLite", done.path)
    with closing(sqlite3.connect(kept.path)) as connection:
        assert connection.execute("SELECT text FROM notes").fetchall() == [("x",)]
    assert any("show tables without any ('notes') only if told" in warning for warning in kept.output.warnings)


async def test_plain_tables_of_a_database_are_read_beside_spatial_ones(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver would hide them."""
    done = await pipeline.to("SpatiaLite", write_geojson(tmp_path / "towns.geojson", [point(1, 2, a=2)]))
    with closing(sqlite3.connect(done.path)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        connection.execute("INSERT INTO notes VALUES (1, 'x')")
        connection.commit()
    back = await pipeline.to("GeoPackage", done.path)
    assert set(readers.geopackage(back.path)) == {"towns", "notes"}


async def test_a_derived_layer_counts_when_it_is_asked_for(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its features are the ones converted."""
    path = tmp_path / "tour.gpx"
    path.write_text(GPX)
    done = await pipeline.to("GeoJson", path, layer="track_points")
    assert len(readers.geojson(done.path)) == done.plan.converted.feature_count == 2


async def test_what_only_the_points_of_a_track_have_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Lines cannot hold their times; databases get a layer of track points."""
    path = tmp_path / "tour.gpx"
    path.write_text(GPX.replace("<ele>1</ele>", "<ele>1</ele><time>2024-05-06T07:08:09Z</time>"))
    (told,) = [words for words in (await pipeline.to("Shapefile", path)).output.warnings if "points" in words]
    assert "('time', of 2 points)" in told
    assert not any("points" in words for words in (await pipeline.to("GeoPackage", path)).output.warnings)
    for target in ("Shapefile", "GeoPackage"):  # the layer that is asked for is the only one
        assert told in (await pipeline.to(target, path, layer="tracks")).output.warnings
        assert told not in (await pipeline.to(target, path, layer="waypoints")).output.warnings
    path.write_text(GPX)
    assert not any("points" in words for words in (await pipeline.to("Shapefile", path)).output.warnings)


async def test_no_more_layers_are_read_than_are_refused(either: Pipeline, tmp_path: Path) -> None:
    """Empty ones are not among them, because none of these is written."""
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as database:
        for number in range(MAX_DATASETS + 5):
            database.execute(f"CREATE TABLE t{number} (a TEXT)")
        for number in range(5, MAX_DATASETS + 5):
            database.execute(f"INSERT INTO t{number} VALUES ('x')")  # noqa: S608 -- ours
        database.commit()
        assert len(await filled_columns(either, path)) == MAX_DATASETS
        for number in range(5):
            database.execute(f"INSERT INTO t{number} VALUES ('x')")  # noqa: S608 -- ours
        database.commit()
    known = await filled_columns(either, path)
    assert sum(known) <= MAX_DATASETS + 1
    with pytest.raises(Rejection, match="holds more than 300 layers; at most 300 are written as GeoPackage"):
        await either.convert(path, ConversionRequest(output="GeoPackage"))


async def test_too_many_layers_are_refused_before_they_are_read(converters: Converters, tmp_path: Path) -> None:
    """Ten thousand folders of a megabyte took a converter for two minutes, because each became a table first."""
    commands: list[Command] = []

    async def run(command: Command) -> Verdict:
        commands.append(command)
        return await converters.run(command)

    path = tmp_path / "a.kml"
    path.write_text(kml(*map(str, range(MAX_LAYERS + 1))), encoding="utf-8")
    with pytest.raises(Rejection, match=re.escape(TOO_MANY_LAYERS)):
        await Pipeline(converters, run, has_sessions=True).to("GeoPackage", path)
    assert len(commands) == 1


def many_tables(path: Path, *, missing: int, existing: int) -> None:
    """Write a GeoPackage that lists `missing` tables that it does not have, and after these `existing` ones."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA application_id = 1196444487")
        database.execute("PRAGMA user_version = 10200")
        database.executescript(CONTENTS)
        for number in range(missing + existing):
            if number >= missing:
                database.execute(f"CREATE TABLE t{number} (fid INTEGER PRIMARY KEY, a TEXT)")
                database.execute(f"INSERT INTO t{number} VALUES (1, 'x')")  # noqa: S608 -- ours
            database.execute(
                "INSERT INTO gpkg_contents (table_name, data_type, srs_id) VALUES (?, 'attributes', 0)", [f"t{number}"]
            )
        database.commit()


def test_no_more_tables_are_opened_than_are_refused(host: Capabilities, tmp_path: Path) -> None:
    """Opening ten thousand took the driver half a minute: each looks through the names of all."""
    path = tmp_path / "a.gpkg"
    many_tables(path, missing=0, existing=MAX_LAYERS + 20)
    listed = subprocess.run(
        [Path(host.ogr2ogr).with_name("ogrinfo"), "-q", "-ro", path],
        env=converter_environment(host, ["GPKG"]),
        capture_output=True,
        check=True,
    )
    assert len(listed.stdout.splitlines()) == MAX_LAYERS + 1


async def test_no_layer_is_left_out_because_tables_are_missing(either: Pipeline, tmp_path: Path) -> None:
    """A file that lists more tables than are opened is refused, however few of them exist."""
    path = tmp_path / "a.gpkg"
    many_tables(path, missing=MAX_LAYERS + 5, existing=2)
    with pytest.raises(Rejection, match=re.escape(TOO_MANY_LAYERS)):
        await either.convert(path, ConversionRequest(output="Ods"))


async def filled_columns(pipeline: Pipeline, path: Path) -> list[int]:
    """How many columns are known of each layer with features."""
    request = ConversionRequest(output="GeoPackage")
    directory, source = pipeline.receive(path)
    target = find_output("GeoPackage")
    async with pipeline.engine.session(pipeline.run, target) as run:
        look = await inspect_source(pipeline.engine, run, source, target, directory, request=request)
    return [len(layer.fields) for layer in look.facts.layers if layer.features]


RESERVED = {
    "GeoPackage": ("gpkg_roads", "GPKG", "sqlite_a", "rtree_a_geom", "ogr_empty_table"),
    "SpatiaLite": ("SQLITE_a", "idx_a_geometry", "geometry_columns", "views_geometry_columns", "spatialindex", "KNN"),
}


@pytest.mark.parametrize("target", RESERVED)
async def test_a_layer_with_a_name_of_the_database_is_renamed(either: Pipeline, tmp_path: Path, target: str) -> None:
    """Their files were refused: the reason was a feature that could not be written, or that none was read back."""
    for name in RESERVED[target]:
        done = await either.to(target, write_geojson(tmp_path / f"{name}.geojson", [point(1, 2, a=1)]))
        assert [dataset.name for dataset in done.plan.datasets] == [f"_{name}"]
        assert len(readers.geojson((await either.to("GeoJson", done.path)).path)) == 1


async def test_layers_that_are_written_together_are_told(either: Pipeline, tmp_path: Path) -> None:
    """GPX has no names of layers; they were said to be renamed, or nothing was said."""
    folder = "<Folder><name>{}</name><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark></Folder>"
    document = "".join(map(folder.format, ("a", "b c")))
    (tmp_path / "a.kml").write_text(
        f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{document}</Document></kml>'
    )
    done = await either.to("Gpx", tmp_path / "a.kml")
    assert done.output.warnings == (
        "GPX stores no layers; the features of 2 layers were written together, without their names.",
    )


@pytest.mark.parametrize("target", ["Kml", "Kmz"])
async def test_layers_with_hyphens_are_renamed_as_told(either: Pipeline, tmp_path: Path, target: str) -> None:
    """The driver of KML renamed them without a word, and results in KMZ could not be read back."""
    folder = "<Folder><name>{}</name><Placemark><Point><coordinates>1,2</coordinates></Point></Placemark></Folder>"
    document = "".join(map(folder.format, ("a-b", "c")))
    (tmp_path / "a.kml").write_text(
        f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{document}</Document></kml>'
    )
    layers = (await either.to("GeoPackage", tmp_path / "a.kml")).path
    done = await either.convert(layers, ConversionRequest(output=target), verifies=True)
    assert done.output.warnings == ("Layers were renamed: 'a-b' to 'a_b'.",)
    assert done.differences == ()
