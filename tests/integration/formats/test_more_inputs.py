"""Further inputs: compressed files, bundles, other JSON formats, and KML beyond placemarks."""

import gzip
import json
import sqlite3
import struct
import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Converted, Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import ESRIJSON, NAMES, SAMPLES, TOPOJSON, point
from tests.support.converters import Converters

PLACEMARK = "<Placemark><name>a</name><Point><coordinates>1,2,3</coordinates></Point></Placemark>"
LINK = "<NetworkLink><Link><href>http://127.0.0.1:9/a.kml</href></Link></NetworkLink>"
OVERLAY = "<GroundOverlay><Icon><href>a.png</href></Icon></GroundOverlay>"
SCREEN = OVERLAY.replace("Ground", "Screen")


MIF = """Version 300
Charset "WindowsLatin1"
Delimiter ","
CoordSys Earth Projection 1, 104
Columns 1
  name Char(20)
Data

Point 13.4 52.5
"""
STYLED = """<Style id="s"/><Placemark><styleUrl>#s</styleUrl><Point><altitudeMode>relativeToGround</altitudeMode>
<coordinates>1,2,3</coordinates></Point></Placemark>"""


POINT = bytes.fromhex("0101000000") + struct.pack("<2d", 1113194.9079327357, 0)
WKT_3857 = (
    'PROJCRS["WGS 84 / Pseudo-Mercator",BASEGEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",'
    '6378137,298.257223563]],ID["EPSG",4326]],CONVERSION["Popular Visualisation Pseudo-Mercator",METHOD["Popular '
    'Visualisation Pseudo Mercator",ID["EPSG",1024]]],CS[Cartesian,2],AXIS["easting (X)",east],AXIS["northing (Y)",'
    'north],LENGTHUNIT["metre",1],ID["EPSG",3857]]'
)


def parquet(path: Path, columns: dict[str, pa.Array], crs: object) -> Path:
    """A GeoParquet file of `columns`, one of which is `geometry`."""
    column = {"encoding": "WKB", "geometry_types": [], "crs": crs}
    document = {"version": "1.0.0-beta.1", "primary_column": "geometry", "columns": {"geometry": column}}
    pq.write_table(pa.table(columns).replace_schema_metadata({b"geo": json.dumps(document).encode()}), path)
    return path


def kml(path: Path, *inside: str) -> Path:
    path.write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{"".join(inside)}</Document></kml>')
    return path


def rows(tmp_path: Path) -> Path:
    return write_geojson(tmp_path / "a.geojson", SAMPLES["points"])


def names(done: Converted) -> list[str]:
    found = [row["properties"] for row in readers.geojson(done.path)]
    return sorted(str(row["name"]) for row in found if isinstance(row, dict))


@pytest.mark.parametrize("document", [TOPOJSON, ESRIJSON])
@pytest.mark.parametrize("extension", ["json", "geojson"])
async def test_other_kinds_of_json_are_read(
    pipeline: Pipeline, tmp_path: Path, document: dict[str, object], extension: str
) -> None:
    """Their members tell them apart; TopoJSON states no coordinate system."""
    path = tmp_path / f"a.{extension}"
    path.write_text(json.dumps(document), encoding="utf-8")
    done = await pipeline.to("GeoJson", path, source_epsg=4326)
    assert done.source.format.token == ("topojson" if document is TOPOJSON else "esrijson")
    assert names(done) == sorted(NAMES)
    (first, *_) = readers.geojson(done.path)
    assert first["geometry"] == {"type": "Point", "coordinates": [13.4, 52.5]}


async def test_a_mapinfo_interchange_file_is_read(pipeline: Pipeline, tmp_path: Path) -> None:
    """With its .mid; without it, a warning reports the missing attributes."""
    whole, lone = tmp_path / "a.zip", tmp_path / "b.zip"
    for path, members in ((whole, {"a.mif": MIF, "a.mid": '"Berlin"\n'}), (lone, {"a.MIF": MIF})):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    done = await pipeline.to("GeoJson", whole)
    assert names(done) == ["Berlin"]
    assert (await pipeline.to("GeoJson", lone)).plan.warnings[0] == (
        "The ZIP holds no .mid beside 'a.MIF', so its features have no attributes."
    )


async def test_a_mapinfo_table_without_its_map_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its rows are read as a table."""
    done = await pipeline.to("MapInfo", rows(tmp_path))
    less = tmp_path / "less.zip"
    with zipfile.ZipFile(done.path) as source, zipfile.ZipFile(less, "w") as target:
        for name in source.namelist():
            if not name.endswith((".map", ".id")):
                target.writestr(name, source.read(name))
    again = await pipeline.to("GeoJson", less)
    assert again.facts.geometry_type == "None"
    assert any("holds no .map" in warning for warning in again.output.warnings)


@pytest.mark.parametrize("folder", ["Städte.gdb/", "a/b/c.GDB/", ""])
async def test_a_file_geodatabase_is_read_from_any_folder(pipeline: Pipeline, tmp_path: Path, folder: str) -> None:
    """With other programs' files among its own, or without a folder."""
    done = await pipeline.to("OpenFileGdb", rows(tmp_path))
    moved = tmp_path / "cities.zip"
    with zipfile.ZipFile(done.path) as source, zipfile.ZipFile(moved, "w") as target:
        for name in source.namelist():
            target.writestr(f"{folder}{Path(name).name}", source.read(name))
        target.writestr(f"{folder}a00000001.host.123.sr.lock", "")
        target.writestr(f"{folder}notes of mine.txt", "")
    again = await pipeline.to("GeoJson", moved)
    assert again.source.format.token == "openfilegdb"  # noqa: S105 -- a format's short name
    assert names(again) == sorted(NAMES)


DAMAGES: Mapping[str, tuple[str, int, str]] = {
    "cut": (".gdbtable", 200, "damaged"),
    "cut in its head": (".gdbtable", 20, "damaged"),
    "cut index": (".gdbtablx", 30, "damaged"),
    "no table": (".gdbtable", 0, "lacks its file 'a[0-9a-f]{8}.gdbtable', which holds the table 'in_line'"),
    "no index": (".gdbtablx", 0, "damaged"),
    "neither": ("", 0, "lacks its file 'a[0-9a-f]{8}.gdbtable', which holds the table 'in_line'"),
}
"""The extension of the damaged file, "" for all files of a table, how many bytes are left, and what is said."""


async def test_a_damaged_layer_of_a_file_geodatabase_is_refused(either: Pipeline, tmp_path: Path) -> None:
    """Its driver says so with exit code 0, and reports the layer as empty; without its table it is not listed."""
    line = feature(geometry("LineString", [[1, 2], [3, 4]]), name="b")
    done = await either.to("OpenFileGdb", write_geojson(tmp_path / "in.geojson", [point(1, 2, name="a"), line]))
    assert len(done.plan.datasets) == 2
    with zipfile.ZipFile(done.path) as whole:
        for name, (extension, size, told) in DAMAGES.items():
            last = Path(max(member for member in whole.namelist() if member.endswith(".gdbtable"))).stem + extension
            damaged = tmp_path / f"{name}.zip"
            with zipfile.ZipFile(damaged, "w") as target:
                for member in whole.namelist():
                    is_damaged = Path(member).name.startswith(last)
                    if not is_damaged or size:
                        target.writestr(member, whole.read(member)[: size if is_damaged else None])
            with pytest.raises(Rejection, match=told):
                await either.to("GeoPackage", damaged)


async def test_a_shp_alone_is_read(pipeline: Pipeline, tmp_path: Path) -> None:
    """A warning reports the missing attributes, and the request must name the coordinate system."""
    done = await pipeline.to("Shapefile", rows(tmp_path))
    with zipfile.ZipFile(done.path) as archive:
        (tmp_path / "roads.shp").write_bytes(archive.read("a.shp"))
    with pytest.raises(Rejection, match="sourceEpsg"):
        await pipeline.to("GeoJson", tmp_path / "roads.shp")
    again = await pipeline.to("GeoJson", tmp_path / "roads.shp", source_epsg=4326)
    assert again.facts.geometry_type == "Point"
    assert any("holds no attributes" in warning for warning in again.output.warnings)


def _with_records(table: bytes, records: int) -> bytes:
    return table[:4] + struct.pack("<I", records) + table[8:]


MISMATCHES: Mapping[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "no records": (".dbf", partial(_with_records, records=0), r"shapes: 2, records: 0\).* send the \.shp alone"),
    "fewer records": (".dbf", partial(_with_records, records=1), r"shapes: 2, records: 1\)"),
    "more records": (".dbf", partial(_with_records, records=3), r"shapes: 2, records: 3\)"),
    "no table": (".dbf", lambda _: b"", "empty or cut off"),
    "a cut header": (".dbf", lambda table: table[:40], "empty or cut off"),
    "a cut index": (".shx", lambda index: index[:-8], ""),
    "no index": (".shx", lambda _: b"", ""),
}
"""The damaged file of a Shapefile with two features, its content, and what is said; "" if the driver repairs it."""


async def test_records_without_shapes_and_shapes_without_records_are_refused(either: Pipeline, tmp_path: Path) -> None:
    """Its driver goes by the .dbf and says nothing."""
    done = await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, name="a"), point(3, 4)]))
    with zipfile.ZipFile(done.path) as whole:
        for name, (extension, damage, told) in MISMATCHES.items():
            damaged = tmp_path / f"{name}.zip"
            with zipfile.ZipFile(damaged, "w") as target:
                for member in whole.namelist():
                    content = whole.read(member)
                    target.writestr(member, damage(content) if member.endswith(extension) else content)
            if told:
                with pytest.raises(Rejection, match=told):
                    await either.to("GeoJson", damaged)
            else:
                again = await either.to("GeoJson", damaged)
                assert [row["geometry"] for row in readers.geojson(again.path)] == [
                    point(1, 2)["geometry"],
                    point(3, 4)["geometry"],
                ], name


@pytest.mark.parametrize("output", ["Kml", "Csv", "GeoJsonSeq", "FlatGeobuf", "Wkt"])
async def test_a_gz_around_one_file_is_unpacked(pipeline: Pipeline, tmp_path: Path, output: str) -> None:
    """Also in several members, as block compressors write them; the result is named after the content."""
    done = await pipeline.to(output, rows(tmp_path))
    whole = done.path.read_bytes()
    packed = tmp_path / f"Meine Daten.{done.path.suffix}.GZ".replace("..", ".")
    packed.write_bytes(gzip.compress(whole[:50]) + gzip.compress(whole[50:]) + b"\0" * 512)
    again = await pipeline.to("GeoJson", packed, source_epsg=4326)
    assert (again.facts.feature_count, again.source.stem) == (2, "Meine_Daten")


async def test_a_geopackage_of_many_features_is_indexed(either: Pipeline, tmp_path: Path) -> None:
    """From 100,000 on, newer drivers would build its index in a thread, which the sandbox refuses."""
    path = tmp_path / "in.csv"
    path.write_text("x,y\n" + "1,2\n" * 100_001)
    done = await either.to("GeoPackage", path, source_epsg=4326)
    with closing(sqlite3.connect(done.path)) as database:
        [(index,)] = database.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'rtree_%' AND sql LIKE '%VIRTUAL%'"
        )
        assert database.execute(f'SELECT count(*) FROM "{index}"').fetchone() == (100_001,)  # noqa: S608 -- our name


async def test_lines_of_wkt_are_read_back(pipeline: Pipeline, tmp_path: Path) -> None:
    """Including their commas."""
    path = tmp_path / "a.wkt"
    path.write_text("LINESTRING (0 0,1 1,2 0)\nGEOMETRYCOLLECTION EMPTY\nPOLYGON ((0 0,0 1,1 1,0 0))\n")
    found = readers.geojson((await pipeline.to("GeoJson", path, source_epsg=4326)).path)
    assert [row["geometry"] and row["geometry"]["type"] for row in found] == ["LineString", None, "Polygon"]  # type: ignore[index]  # JSON is untyped


WKB = "0101000000000000000000F03F0000000000000040"


@pytest.mark.parametrize("first", ["POINT (nan 1)", "POINT(1e400 abc)", WKB, f"  {WKB}"])
async def test_no_first_line_with_a_geometry_is_taken_for_a_name(either: Pipeline, tmp_path: Path, first: str) -> None:
    """Without a session, one with other coordinates than digits was lost, and WKB in any case."""
    path = tmp_path / "a.wkt"
    path.write_text(f"{first}\nPOINT (1 2)\n")
    assert len(readers.geojson((await either.to("GeoJson", path, source_epsg=4326)).path)) == 2
    path.write_text("Point\nPOINT (1 2)\n")
    assert len(readers.geojson((await either.to("GeoJson", path, source_epsg=4326)).path)) == 1


@pytest.mark.parametrize("first", [f"{WKB},a", '"{""type"":""Point"",""coordinates"":[1,2]}",a'])
async def test_a_table_without_names_keeps_its_first_geometry(either: Pipeline, tmp_path: Path, first: str) -> None:
    """Its first row became the names of the columns."""
    path = tmp_path / "a.csv"
    path.write_text(f"{first}\n{first}\n")
    found = readers.geojson((await either.to("GeoJson", path, source_epsg=4326)).path)
    assert [row["geometry"] and row["geometry"]["coordinates"] for row in found] == [[1, 2], [1, 2]]  # type: ignore[index]  # JSON is untyped


async def test_what_kml_holds_besides_features_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Each kind once; a plain file has no warnings."""
    done = await pipeline.to("GeoJson", kml(tmp_path / "a.kml", PLACEMARK, LINK, LINK, OVERLAY, STYLED))
    for words in (
        "Network links (2)",
        "Images of ground overlays (1)",
        "Styles",
        "Altitude modes other than absolute (1)",
    ):
        assert sum(words in warning for warning in done.output.warnings) == 1, (words, done.output.warnings)
    assert not (await pipeline.to("GeoJson", kml(tmp_path / "b.kml", PLACEMARK))).output.warnings


async def test_the_outline_of_a_ground_overlay_is_kept(pipeline: Pipeline, tmp_path: Path) -> None:
    """It is a feature, so no warning reports it as omitted."""
    box = "<LatLonBox><north>2</north><south>1</south><east>4</east><west>3</west></LatLonBox></GroundOverlay>"
    path = kml(tmp_path / "a.kml", PLACEMARK, OVERLAY.replace("</GroundOverlay>", box))
    done = await pipeline.to("GeoJson", path)
    assert done.facts.histogram == {"Point": 1, "Polygon": 1}
    assert any("their outlines were kept" in warning for warning in done.output.warnings)


async def test_a_kml_of_overlays_says_that_it_has_no_features(pipeline: Pipeline, tmp_path: Path) -> None:
    """It is not reported as damaged; that their outlines were kept was said, too."""
    with pytest.raises(
        Rejection, match=r"converted\. Images of ground overlays \(1\) are left out, and their outlines are"
    ):
        await pipeline.to("GeoJson", kml(tmp_path / "a.kml", OVERLAY))


@pytest.mark.parametrize("kind", ["PhotoOverlay", "ScreenOverlay id='a'"])
async def test_the_places_of_overlays_that_are_not_read_are_told(pipeline: Pipeline, tmp_path: Path, kind: str) -> None:
    """Only their images were said to be missing, but photos have names and points, too."""
    overlay = f"<{kind}><name>n</name><Point><coordinates>1,2</coordinates></Point></{kind.split(maxsplit=1)[0]}>"
    done = await pipeline.to("GeoJson", kml(tmp_path / "a.kml", PLACEMARK, overlay))
    (told,) = done.output.warnings
    assert told.startswith("Screen and photo overlays (1) were left out, with their names, descriptions and points.")


SCHEMA = '<Schema name="s" id="s"><SimpleField name="n" type="int"/></Schema>'


def typed(number: int) -> str:
    """A placemark with a typed attribute."""
    data = f'<SchemaData schemaUrl="#s"><SimpleData name="n">{number}</SimpleData></SchemaData>'
    point = f"<Point><coordinates>{number},2</coordinates></Point>"
    return f"<Placemark><ExtendedData>{data}</ExtendedData>{point}</Placemark>"


async def test_all_documents_of_a_kmz_are_converted(either: Pipeline, tmp_path: Path) -> None:
    """With folders and typed attributes, most of which the driver loses; layers with equal names stay apart."""
    folder = f"<Folder><name>towns</name>{typed(2)}</Folder>"
    first = kml(tmp_path / "doc.kml", SCHEMA, typed(1), folder).read_bytes()
    second = kml(tmp_path / "b.kml", SCHEMA, folder.replace(">2", ">3"), SCREEN).read_bytes()
    with zipfile.ZipFile(tmp_path / "a.kmz", "w") as archive:
        archive.writestr("doc.kml", first)
        archive.writestr("files/b.kml", second)
        archive.write(kml(tmp_path / "links.kml", LINK), "links.kml")
    done = await either.to("GeoPackage", tmp_path / "a.kmz")
    assert [layer.name for layer in done.facts.layers if layer.features] == ["doc", "towns", "towns_2"]
    found = []
    with closing(sqlite3.connect(done.path)) as connection:
        for dataset in done.plan.datasets:
            found += connection.execute(f'SELECT n FROM "{dataset.name}"').fetchall()  # noqa: S608 -- ours
    assert found == [(1,), (2,), (3,)]
    assert [warning.split()[0] for warning in done.output.warnings] == ["Network", "Screen", "The"]
    assert "'b' is empty" in done.output.warnings[-1]


async def test_a_property_called_type_is_no_topology(pipeline: Pipeline, tmp_path: Path) -> None:
    """Only the outermost object decides."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, type="Topology", geometryType="x")])
    assert pipeline.receive(path)[1].format.token == "geojson"  # noqa: S105 -- a format's short name


@pytest.mark.parametrize("bad", ["POINT (13 950)", "LINESTRING (0 0,1 950)", "MULTIPOINT (0 0,1 950)"])
async def test_the_row_of_a_coordinate_that_is_no_degree_is_named(pipeline: Pipeline, tmp_path: Path, bad: str) -> None:
    """One typing error is found among thousands of rows."""
    path = tmp_path / "a.csv"
    path.write_text("".join(f'{number},"{bad if number == 4 else "POINT (1 2)"}"\n' for number in range(9)))
    with pytest.raises(Rejection, match=r"not degrees.*in feature 5\. .*keepCoordinates=true"):
        await pipeline.to("GeoPackage", path, source_epsg=4326)


async def test_coordinates_of_no_system_are_kept_though_the_format_has_one(pipeline: Pipeline, tmp_path: Path) -> None:
    """GeoJSON of a drawing does not state its system, but cannot be in degrees."""
    path = write_geojson(tmp_path / "a.geojson", [point(1200, 3400, a=1)])
    with pytest.raises(Rejection, match="keepCoordinates=true"):
        await pipeline.to("GeoPackage", path)
    done = await pipeline.to("GeoPackage", path, keep_coordinates=True)
    assert done.output.output_epsg is None
    rows = (await pipeline.to("Csv", done.path, keep_coordinates=True)).path.read_text().splitlines()
    assert rows[1] == '"POINT (1200 3400)",1'


@pytest.mark.parametrize("crs", [WKT_3857, "EPSG:3857"])
async def test_geoparquet_with_its_system_as_text(pipeline: Pipeline, tmp_path: Path, crs: str) -> None:
    """As in drafts of the format; text that is neither WKT nor a code is no system, and is not looked up anywhere."""
    path = parquet(tmp_path / "a.parquet", {"geometry": pa.array([POINT])}, crs)
    (found,) = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert found["geometry"] == {"type": "Point", "coordinates": [10.0, 0.0]}
    with pytest.raises(Rejection, match="sourceEpsg"):
        await pipeline.to("GeoJson", parquet(tmp_path / "b.parquet", {"geometry": pa.array([POINT])}, "/etc/passwd"))


async def test_geoparquet_with_awkward_columns(pipeline: Pipeline, tmp_path: Path) -> None:
    """Times of day, durations and unsigned numbers keep their values."""
    columns = {
        "geometry": pa.array([POINT]),
        "t32": pa.array([1500], pa.time32("ms")),
        "t64": pa.array([3_723_000_000_001], pa.time64("ns")),
        "wait": pa.array([90], pa.duration("s")),
        "wait_ns": pa.array([1_000_000_001], pa.duration("ns")),
        "wide": pa.array([2**64 - 1], pa.uint64()),
        "price": pa.array([Decimal("123456789012345678.90"), None][:1]),
        "exact": pa.array([Decimal("0.1")], pa.decimal128(38, 18)),
        "at": pa.array([1_700_000_000_000_000_001], pa.timestamp("ns")),
    }
    done = await pipeline.to("GeoJson", parquet(tmp_path / "a.parquet", columns, None), source_epsg=3857)
    (found,) = readers.geojson(done.path)
    assert found["properties"] == {
        "t32": "00:00:01.500",
        "t64": "01:02:03.000000001",
        "wait": "PT90S",
        "wait_ns": "PT1.000000001S",
        "wide": "18446744073709551615",
        "price": 123456789012345680.0,
        "exact": 0.1,
        "at": "2023-11-14T22:13:20",
    }
    assert any(words.startswith("2 values of 'price', 'at' lost digits") for words in done.output.warnings)


async def test_geoparquet_says_what_it_is_to_every_reader(pipeline: Pipeline, tmp_path: Path) -> None:
    """Some look into the file's metadata, others into the Arrow schema's."""
    path = (await pipeline.to("GeoParquet", rows(tmp_path))).path
    of_file = json.loads(pq.ParquetFile(path).metadata.metadata[b"geo"])
    of_schema = json.loads(pq.read_schema(path).metadata[b"geo"])
    assert of_file["columns"]["geometry"]["geometry_types"] == ["Point"]
    assert (of_schema["primary_column"], of_schema["version"]) == ("geometry", "1.1.0")


async def test_what_esri_json_cannot_pass_on_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Curves, features that the server held back, and dates where the driver leaves them as numbers."""
    curve = {"curvePaths": [[[6, 3], {"b": [[3, 2], [6, 1], [2, 4]]}]]}
    rows = [curve, {"paths": [[[1, 2], [3, 4]]]}]
    document = {
        "geometryType": "esriGeometryPolyline",
        "spatialReference": {"wkid": 4326},
        "exceededTransferLimit": True,
        "fields": [{"name": "at", "type": "esriFieldTypeDate"}],
        "features": [{"attributes": {"at": 1704164645000}, "geometry": row} for row in rows],
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    done = await pipeline.to("GeoJson", path)
    for words in ("Geometries with curves (1)", "exceededTransferLimit"):
        assert sum(words in warning for warning in done.output.warnings) == 1, done.output.warnings
    (date,) = {row["properties"]["at"] for row in json.loads(done.path.read_text())["features"]}
    assert date in {"1704164645000", "2024-01-02T03:04:05Z"}
    told = sum("Columns of dates (1)" in warning for warning in done.output.warnings)
    assert told == (date == "1704164645000"), (date, done.output.warnings)


async def test_bounds_of_features_in_gml_are_no_columns(pipeline: Pipeline, tmp_path: Path) -> None:
    """Some versions of the driver read them so; they follow from the geometries."""
    path = tmp_path / "a.gml"
    features = "".join(
        f'<gml:featureMember><a:f><gml:boundedBy><gml:Envelope srsName="EPSG:4326"><gml:lowerCorner>{n} 2'
        f"</gml:lowerCorner><gml:upperCorner>{n} 2</gml:upperCorner></gml:Envelope></gml:boundedBy><a:n>{n}</a:n><a:g>"
        f'<gml:Point srsName="EPSG:4326"><gml:pos>{n} 2</gml:pos></gml:Point></a:g></a:f></gml:featureMember>'
        for n in range(60)
    )
    path.write_text(f'<a:C xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml">{features}</a:C>')
    done = await pipeline.to("GeoJson", path)
    assert done.output.warnings == ()
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": n} for n in range(60)]


async def test_references_in_gml_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver leaves them out."""
    path = tmp_path / "a.gml"
    path.write_text(
        '<a:C xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml" xmlns:xlink="http://www.w3.org/1999/xlink">'
        '<gml:featureMember><a:f><a:n>1</a:n><a:owner xlink:href="#o1"/><a:g><gml:Point srsName="EPSG:4326"><gml:pos>'
        "1 2</gml:pos></gml:Point></a:g></a:f></gml:featureMember></a:C>"
    )
    warnings = (await pipeline.to("GeoJson", path)).output.warnings
    assert warnings == ("References to other elements (xlink:href, 1) were left out.",)


async def test_attributes_that_the_driver_of_gml_leaves_out_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Units of measure become columns of their own; other attributes of values are lost."""
    (tmp_path / "a.gml").write_text(
        '<a:c xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml/3.2"><gml:featureMember><a:f>'
        '<a:n codeSpace="u">1</a:n><a:t xml:lang="de">x</a:t><a:h uom="m">2</a:h><a:g>'
        '<gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point></a:g></a:f></gml:featureMember></a:c>',
        encoding="utf-8",
    )
    done = await pipeline.to("GeoPackage", tmp_path / "a.gml")
    assert done.output.warnings == (
        "Attributes of features and values (2), such as codeSpace, nilReason and xml:lang, were left out.",
    )
    assert {"n", "t", "h", "h_uom"} <= {field.name for field in done.facts.layers[0].fields}


async def test_what_geometries_of_aixm_say_of_themselves_is_kept_or_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Besides elevations; the driver reads more of it since GDAL 3.10. The datum of the airport is a value."""
    (tmp_path / "a.gml").write_text(
        '<m:AIXMBasicMessage xmlns:m="http://www.aixm.aero/schema/5.1.1/message" xmlns:aixm="http://www.aixm.aero/'
        'schema/5.1.1" xmlns:gml="http://www.opengis.net/gml/3.2"><m:hasMember><aixm:AirportHeliport gml:id="x">'
        "<aixm:fieldElevation>98</aixm:fieldElevation><aixm:verticalDatum>NAVD88</aixm:verticalDatum><aixm:ARP>"
        '<aixm:ElevatedPoint gml:id="e" srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>48 2</gml:pos>'
        "<aixm:horizontalAccuracy>0.5</aixm:horizontalAccuracy><aixm:elevation>97</aixm:elevation>"
        "<aixm:verticalDatum>EGM96</aixm:verticalDatum><aixm:verticalAccuracy>0.25</aixm:verticalAccuracy>"
        "</aixm:ElevatedPoint></aixm:ARP></aixm:AirportHeliport></m:hasMember></m:AIXMBasicMessage>",
        encoding="utf-8",
    )
    done = await pipeline.to("GeoJson", tmp_path / "a.gml")
    (row,) = readers.geojson(done.path)
    assert "'elevation': 97" in str(row["properties"])
    accuracies = "Horizontal accuracies of AIXM geometries (1) were left out."
    heights = "Vertical datums and accuracies of AIXM geometries (2) were left out."
    told = {accuracies} if "verticalAccuracy" in str(row["properties"]) else {accuracies, heights}
    assert told == {accuracies, heights} & set(done.output.warnings)


SEGMENT = "<gml:LineStringSegment><gml:posList>48 9 49 9</gml:posList></gml:LineStringSegment>"
RING = "<gml:LinearRing><gml:posList>48 9 48 10 49 10 48 9</gml:posList></gml:LinearRing>"
PATCH = f"<gml:PolygonPatch><gml:exterior>{RING}</gml:exterior></gml:PolygonPatch>"


@pytest.mark.parametrize(("largest", "told"), [(7, 2), (1 << 40, 0)])
async def test_numbers_that_the_driver_of_flatgeobuf_takes_for_none_are_told(
    either: Pipeline, tmp_path: Path, largest: int, told: int
) -> None:
    """GDAL marks fields that are not set with this number, of 32 bits."""
    numbers = [-21121, 5, -21122, largest, -21121]
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, a=number) for number in numbers])
    done = await either.to("GeoJson", (await either.to("FlatGeobuf", path)).path)
    found = [str(row["properties"]) for row in readers.geojson(done.path)]
    assert sum("'a': None" in row for row in found) == told
    sentence = (
        f"The number -21121 in columns of 32 bits ({told} values) was read as no value. Save the columns with 64 bits "
        "to keep it."
    )
    assert done.output.warnings == (sentence,) * bool(told)


@pytest.mark.parametrize("source", ["GeoJson", "Gml", "Csv"])
@pytest.mark.parametrize(("largest", "told"), [(7, 2), (1 << 40, 0)])
async def test_numbers_that_the_driver_of_geodatabases_takes_for_none_are_told(
    either: Pipeline, tmp_path: Path, source: str, largest: int, told: int
) -> None:
    """Its columns of integers that need more than 32 bits hold floating-point numbers."""
    numbers = [-21121, 5, -21122, largest, -21121]
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, a=number) for number in numbers])
    if source != "GeoJson":
        path = (await either.to(source, path)).path
    done = await either.to("OpenFileGdb", path, source_epsg=4326)
    said = [warning for warning in done.output.warnings if "21121" in warning or "When read back" in warning]
    assert [warning.partition(";")[2].split()[0] for warning in said] == [f"{told}"] * bool(told), said


ELEVATED = {
    "Point": ("<gml:pos>48 9</gml:pos>", "[9.0, 48.0]"),
    "Curve": (f"<gml:segments>{SEGMENT}</gml:segments>", "[[9.0, 48.0], [9.0, 49.0]]"),
    "Surface": (f"<gml:patches>{PATCH}</gml:patches>", "[[[9.0, 48.0], [10.0, 48.0], [10.0, 49.0], [9.0, 48.0]]]"),
}
"""What AIXM geometries with an elevation hold, by their kind, and their coordinates as text."""
OF_ELEVATED = '<aixm:elevation uom="M">97</aixm:elevation><aixm:verticalDatum>EGM_96</aixm:verticalDatum>'


@pytest.mark.parametrize("kind", ELEVATED)
@pytest.mark.parametrize("root", ["m:AIXMBasicMessage", "m:FeatureCollection"])
async def test_aixm_geometries_with_an_elevation_are_read(
    pipeline: Pipeline, tmp_path: Path, kind: str, root: str
) -> None:
    """The driver knows points and areas in messages of AIXM alone; others had no geometry."""
    content, coordinates = ELEVATED[kind]
    (tmp_path / "a.gml").write_text(
        f'<{root} xmlns:m="http://www.aixm.aero/schema/5.1.1/message" xmlns:aixm="http://www.aixm.aero/schema/5.1.1"'
        f' xmlns:gml="http://www.opengis.net/gml/3.2"><m:member><aixm:A gml:id="x"><aixm:n>1</aixm:n><aixm:g>'
        f'<aixm:Elevated{kind} gml:id="e" srsName="urn:ogc:def:crs:EPSG::4326">{content}{OF_ELEVATED}'
        f"</aixm:Elevated{kind}></aixm:g></aixm:A></m:member></{root}>",
        encoding="utf-8",
    )
    done = await pipeline.to("GeoJson", tmp_path / "a.gml")
    (row,) = readers.geojson(done.path)
    assert f"'coordinates': {coordinates}" in str(row["geometry"])
    elevations = "Elevations of AIXM geometries (1), which are values beside their coordinates, were left out."
    assert (elevations in done.output.warnings) == ("'elevation': 97" not in str(row["properties"]))


@pytest.mark.parametrize("value", ["yes", ""])
async def test_values_named_like_aixm_geometries_stay_values(pipeline: Pipeline, tmp_path: Path, value: str) -> None:
    (tmp_path / "a.gml").write_text(
        '<a:c xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml/3.2"><gml:featureMember><a:f>'
        f"<a:ElevatedPoint>{value}</a:ElevatedPoint><a:n>1</a:n><a:g>"
        '<gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point></a:g></a:f></gml:featureMember></a:c>',
        encoding="utf-8",
    )
    (row,) = readers.geojson((await pipeline.to("GeoJson", tmp_path / "a.gml")).path)
    assert row["geometry"] == {"type": "Point", "coordinates": [1, 2]}
    assert ("'ElevatedPoint': 'yes'" in str(row["properties"])) == bool(value)


async def test_values_that_are_not_of_the_declared_type_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """SQLite stores any value in any column; its driver makes 0 of a text in a column of numbers."""
    path = tmp_path / "a.sqlite"
    with edited(path) as connection:
        connection.execute("CREATE TABLE a (i INTEGER, r REAL, t TEXT, d DATE, n, good INTEGER, place POINT)")
        connection.execute(
            "INSERT INTO a VALUES (1, 1.5, 'a', '2024-01-02', 1, 1, x'00'), ('n/a', '', 5, 'soon', 2, '7', NULL)"
        )
    warnings = (await pipeline.to("Csv", path)).output.warnings
    assert (
        sum("of other types than the database declares (3 values of 'i', 'r', 'd')" in warning for warning in warnings)
        == 1
    ), warnings


async def test_values_of_other_types_in_a_geopackage_are_told(either: Pipeline, tmp_path: Path) -> None:
    """The rule for SQLite holds for it as well, in layers and tables, however it is read."""
    source = write_geojson(tmp_path / "a.geojson", [point(1, 2, i=1, r=1.5, t="a", d="2024-01-02", good=1)] * 2)
    path = tmp_path / "b.gpkg"
    path.write_bytes((await either.to("GeoPackage", source)).path.read_bytes())
    with edited(path) as connection:
        for trigger, _ in connection.execute("SELECT name, 1 FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        connection.execute("UPDATE a SET i = 'n/a', r = '-', t = 5, d = 'soon', good = '7' WHERE fid = 2")
    done = await either.to("Csv", path)
    told = [warning for warning in done.output.warnings if "of other types" in warning]
    assert ["(3 values of 'i', 'r', 'd')" in warning for warning in told] == [True]
    assert (await either.to("Csv", source)).output.warnings == ()


LABELS = """Version 300
Charset "WindowsLatin1"
Delimiter ","
CoordSys Earth Projection 1, 0
Columns 1
  id Integer
Data
Point 1 2
Text "Hello World"
  1 2 3 4
Text "Second"
  1 2 3 4
"""


@pytest.mark.parametrize("kind", ["mif", "tab"])
async def test_texts_of_labels_are_told(converters: Converters, either: Pipeline, tmp_path: Path, kind: str) -> None:
    """The driver tells them in the style of a feature alone."""
    directory = converters.new_directory()
    (directory / "a.mif").write_text(LABELS)
    (directory / "a.mid").write_text("1\n2\n3\n")
    if kind == "tab":
        assert await converters.ogr2ogr(directory, "-f", "MapInfo File", "b.tab", "a.mif", "-nln", "b")
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for file in directory.glob("b.*" if kind == "tab" else "a.*"):
            packed.write(file, file.name)
    done = await either.to("GeoPackage", path)
    told = [warning for warning in done.output.warnings if "abels" in warning]
    assert told == ["Texts of labels (2) were left out; their positions and attributes were kept."]


ESRI_CODES = {
    '{"wkid": 102003}': (-94.8300, 39.2789),
    '{"latestWkid": 3857, "wkid": 102100}': (0.8983, 1.7964),
    '{"wkid": 102100}': (0.8983, 1.7964),
}
ESRI_POINT = """{"geometryType": "esriGeometryPoint", "spatialReference": SYSTEM, "fields": [{"name": "a", "type":
"esriFieldTypeInteger"}], "features": [{"attributes": {"a": 1}, "geometry": {"x": 100000, "y": 200000}}]}"""


@pytest.mark.parametrize("system", ESRI_CODES)
async def test_codes_of_esri_are_known(pipeline: Pipeline, tmp_path: Path, system: str) -> None:
    """The driver takes them for codes of EPSG."""
    path = tmp_path / "a.json"
    path.write_text(ESRI_POINT.replace("SYSTEM", system))
    (row,) = readers.table((await pipeline.to("Csv", path)).path)
    place = tuple(map(float, row["WKT"].removeprefix("POINT (").removesuffix(")").split()))
    assert place == pytest.approx(ESRI_CODES[system], abs=1e-3)


async def test_an_unknown_code_of_esri_is_named(pipeline: Pipeline, tmp_path: Path) -> None:
    """What the refusal advises works."""
    path = tmp_path / "a.json"
    path.write_text(ESRI_POINT.replace("SYSTEM", '{"wkid": 999999}'))
    with pytest.raises(Rejection, match=r"in 'ESRI:999999', which is not a known system.*sourceEpsg.*keepCoordinates"):
        await pipeline.to("Csv", path)
    assert (await pipeline.to("Csv", path, source_epsg=3857)).facts.feature_count == 1
    assert (await pipeline.to("Csv", path, keep_coordinates=True)).facts.feature_count == 1


async def test_degrees_and_minutes_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Naming their columns in xField and yField would not help."""
    path = tmp_path / "a.csv"
    path.write_text("id,lat,lon\n1,50°30N,7°10E\n2,51°30N,7°10E\n", encoding="utf-8")
    with pytest.raises(Rejection, match=r"'lon' and 'lat' are named like coordinates.*Leave sourceEpsg out") as refusal:
        await either.to("GeoJson", path, source_epsg=4326)
    assert "xField" not in str(refusal.value)
    done = await either.to("GeoJson", path)
    assert [warning.partition(", but")[0] for warning in done.output.warnings] == [
        "The columns 'lon' and 'lat' are named like coordinates"
    ]
    path.write_text("id,lat,lon\n1,50.5,7.25\n", encoding="utf-8")
    assert (await either.to("GeoJson", path, source_epsg=4326)).output.warnings == ()
    path.write_text("id,lat,lon\n", encoding="utf-8")  # without rows, there is nothing to say of them
    assert not any("coordinates" in warning for warning in (await either.to("GeoJson", path)).output.warnings)


async def test_pairs_of_coordinates_in_one_column_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """The table would be converted without geometry, or refused with a remedy that does not help."""
    path = tmp_path / "a.csv"
    path.write_text('id,"Lat, Lon"\n1,"52.5, 13.4"\n', encoding="utf-8")
    (told,) = (await pipeline.to("GeoJson", path)).output.warnings
    assert told.startswith("'Lat, Lon' is named like a column with both coordinates.")
    with pytest.raises(Rejection, match="name them in xField and yField"):
        await pipeline.to("FlatGeobuf", path)
    for name in ("Lat, Lon", "location"):
        path.write_text(f'id,"{name}"\n1,"52.5, 13.4"\n', encoding="utf-8")
        with pytest.raises(Rejection, match="make two columns of them, such as lat and lon"):
            await pipeline.to("GeoJson", path, source_epsg=4326)


GML_POINT = "<gml:Point srsName='EPSG:4326'>\n<gml:pos>1 2</gml:pos></gml:Point>"
GML_MEMBERS = "".join(f"<gml:pointMember>{GML_POINT}</gml:pointMember>" for _ in range(3))
GEOMETRIES_IN_GML = {
    f"<a:g>{GML_POINT}</a:g>": 0,
    f"<a:g><gml:MultiPoint srsName='EPSG:4326'>{GML_MEMBERS}</gml:MultiPoint></a:g>": 0,
    f"<a:g>{GML_POINT}</a:g>\n  <a:h>{GML_POINT}</a:h>": 1,
    f"<a:g>{GML_POINT}</a:g><a:m>text</a:m>\n<a:h>{GML_POINT}</a:h><a:i>{GML_POINT}</a:i>": 2,
    f"<a:g>{GML_POINT}</a:g><a:m>{'long ' * 99}</a:m>\n<a:h>{GML_POINT}</a:h>": 1,
}


@pytest.mark.parametrize("geometries", GEOMETRIES_IN_GML, ids=["one", "parts", "two", "three", "long"])
async def test_further_geometries_in_gml_are_told(pipeline: Pipeline, tmp_path: Path, geometries: str) -> None:
    """The driver keeps one of each feature."""
    path = tmp_path / "a.gml"
    feature = "<gml:featureMember><a:f><a:n>1</a:n>{}</a:f></gml:featureMember>"
    path.write_text(
        '<a:C xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml">'
        f"{feature.format(geometries)}{feature.format(f'<a:g>{GML_POINT}</a:g>')}</a:C>"
    )
    left_out = GEOMETRIES_IN_GML[geometries]
    warnings = (await pipeline.to("GeoJson", path)).output.warnings
    told = f"Features with several geometries (1): one of each was read; the others ({left_out}) were left out."
    assert warnings == (told,) * (left_out > 0)


RINGS = {
    "a.kml": '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><Polygon><outerBoundaryIs><LinearRing><coordinates>'
    "0,0 1,0 1,1 {}</coordinates></LinearRing></outerBoundaryIs></Polygon></Placemark></kml>",
    "a.geojson": '{{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [{}]]]}}',
    "a.gml": '<f:FeatureCollection xmlns:f="http://f" xmlns:gml="http://www.opengis.net/gml"><gml:featureMember><f:a><f:g>'
    '<gml:Polygon srsName="EPSG:4326"><gml:outerBoundaryIs><gml:LinearRing><gml:coordinates>0,0 1,0 1,1 {}'
    "</gml:coordinates></gml:LinearRing></gml:outerBoundaryIs></gml:Polygon></f:g></f:a></gml:featureMember>"
    "</f:FeatureCollection>",
    "a.csv": 'wkt\n"POLYGON ((0 0,1 0,1 1,{}))"\n',
}


@pytest.mark.parametrize("is_closed", [False, True])
@pytest.mark.parametrize("name", RINGS)
async def test_rings_that_are_not_closed_are_told(
    either: Pipeline, tmp_path: Path, name: str, *, is_closed: bool
) -> None:
    """They are written so, and some programs refuse the whole result."""
    path = tmp_path / name
    last = "0,0" if is_closed else "0,1"
    path.write_text(RINGS[name].format(last if name != "a.csv" else last.replace(",", " ")))
    warnings = (await either.to("GeoPackage", path, source_epsg=4326)).output.warnings
    assert [warning.startswith("Rings of areas do not end where they begin") for warning in warnings] == [True] * (
        not is_closed
    )


LINES = {
    "a.gpx": '<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="a"><trk><trkseg>{}</trkseg></trk>'
    '<trk><trkseg><trkpt lat="7" lon="3"/><trkpt lat="9" lon="5"/></trkseg></trk></gpx>',
    "a.kml": '<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><LineString><coordinates>{}</coordinates>'
    "</LineString></Placemark></kml>",
    "a.geojson": '{{"type": "LineString", "coordinates": [{}]}}',
    "a.gml": '<f:FeatureCollection xmlns:f="http://f" xmlns:gml="http://www.opengis.net/gml"><gml:featureMember><f:a>'
    '<f:g><gml:LineString srsName="EPSG:4326"><gml:posList>{}</gml:posList></gml:LineString></f:g></f:a>'
    "</gml:featureMember></f:FeatureCollection>",
    "a.csv": 'wkt\n"LINESTRING ({})"\n"POINT (7 8)"\n',
    "a.json": '{{"geometryType": "esriGeometryPolyline", "fields": [], "spatialReference": {{"wkid": 4326}}, '
    '"features": [{{"attributes": {{}}, "geometry": {{"paths": [[{}]]}}}}]}}',
}
PLACES = {
    "a.gpx": ("<trkpt lat='{1}' lon='{0}'/>", ""),
    "a.kml": ("{},{}", " "),
    "a.geojson": ("[{}, {}]", ","),
    "a.gml": ("{} {}", " "),
    "a.csv": ("{} {}", ", "),
    "a.json": ("[{}, {}]", ","),
}


@pytest.mark.parametrize("positions", [1, 2])
@pytest.mark.parametrize("name", LINES)
async def test_lines_of_a_single_position_are_told(either: Pipeline, tmp_path: Path, name: str, positions: int) -> None:
    """They are written so, and some programs refuse the whole result."""
    path = tmp_path / name
    place, between = PLACES[name]
    path.write_text(LINES[name].format(between.join(place.format(1 + at, 5 + at) for at in range(positions))))
    warnings = (await either.to("GeoPackage", path, source_epsg=4326)).output.warnings
    told = [warning for warning in warnings if "a single position in 1 feature" in warning]
    assert len(told) == (positions == 1)


@pytest.mark.parametrize("kind", ["Date", "Integer", "Char(9)"])
async def test_tables_of_mapinfo_may_have_a_column_named_like_styles(
    converters: Converters, tmp_path: Path, kind: str
) -> None:
    """It hides the styles of features from the query for labels, whatever its type."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.mif", LABELS.partition("Text")[0].replace("id Integer", f"OGR_STYLE {kind}"))
        packed.writestr("a.mid", "20240102\n")
    for has_sessions in (True, False):
        done = await Pipeline(converters, has_sessions=has_sessions).to("GeoPackage", path)
        assert done.output.warnings == ()
        assert [field.name for field in done.facts.layers[0].fields] == ["OGR_STYLE"]
