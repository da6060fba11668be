"""Inputs as other software writes them."""

import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.errors import Rejection
from service.formats.losses import UNPLACED
from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.geojson.scan import scan
from service.usecases.verify_output import verify_output
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point, polygon

ENDLESS = "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
CLOSED = ["geojson", "kml", "gpx", "gml", "csv", "dxf", "fgb", "gpkg", "sqlite", "xlsx", "ods"]
BINARY_OR_MARKUP = ["geojson", "kml", "kmz", "gpx", "gml", "dxf", "fgb", "gpkg", "sqlite", "parquet", "xlsx"]


async def features(pipeline: Pipeline, path: Path, **wishes: object) -> list[dict[str, object]]:
    return readers.geojson((await pipeline.to("GeoJson", path, **wishes)).path)


def written(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"name,lat,lon\nK\xf6ln,50.9,6.9\n",
        "name;x;y\nKöln;6,9;50,9\n".encode(),
        "\ufeffname\tLONGITUDE\tLATITUDE\nKöln\t6.9\t50.9\n".encode(),
        "name|wkt\nKöln|POINT (6.9 50.9)\n".encode("utf-16"),
    ],
)
async def test_csv_of_every_kind(pipeline: Pipeline, tmp_path: Path, content: bytes) -> None:
    """Whatever the encoding, delimiter, decimal separator and column names."""
    (found,) = await features(pipeline, written(tmp_path / "a.csv", content), source_epsg=4326)
    assert found["properties"] == {"name": "Köln"}
    assert found["geometry"] == {"type": "Point", "coordinates": [6.9, 50.9]}


@pytest.mark.parametrize("content", ["wkt\nPOINT (6.9 50.9)\n", '"wkt"\n"POINT (6.9 50.9)"\n'])
async def test_a_csv_of_one_column_is_read(pipeline: Pipeline, tmp_path: Path, content: str) -> None:
    """Even a single column of geometries."""
    (found,) = await features(pipeline, written(tmp_path / "a.csv", content), source_epsg=4326)
    assert found["geometry"] == {"type": "Point", "coordinates": [6.9, 50.9]}
    assert found["properties"] == {}


async def test_csv_needs_source_epsg_only_where_it_has_places(pipeline: Pipeline, tmp_path: Path) -> None:
    """Tables without coordinates need none."""
    with pytest.raises(Rejection, match="sourceEpsg"):
        await features(pipeline, written(tmp_path / "a.csv", "name,x,y\na,1,2\n"))
    (found,) = await features(pipeline, written(tmp_path / "b.csv", "name,code\na,007\n"))
    assert found == {"type": "Feature", "properties": {"name": "a", "code": "007"}, "geometry": None}


@pytest.mark.parametrize("name", ["a.csv", "a.ods", "a.xlsx"])
async def test_a_table_without_places_is_told_unless_it_stays_a_table(
    pipeline: Pipeline, tmp_path: Path, name: str
) -> None:
    """Its columns may hold coordinates under names that are not known."""
    table = written(tmp_path / "a.csv", "name,rechts,hoch,n\na,3500000,5500000,1\n")
    if name != table.name:
        copy = (await pipeline.to(name.removeprefix("a.").title(), table)).path
        table = copy.rename(tmp_path / name)
    for target in ("GeoJson", "Kml", "Shapefile", "GeoPackage"):
        assert (await pipeline.to(target, table)).output.warnings == (UNPLACED,)
    for target in {"Csv", "Ods", "Xlsx"} - {name.removeprefix("a.").title()}:
        assert (await pipeline.to(target, table)).output.warnings == ()


async def test_a_sequence_with_a_broken_line_is_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver would stop there silently."""
    good = json.dumps(point(1, 2, a=1))
    with pytest.raises(Rejection, match="line"):
        await pipeline.to("GeoJson", written(tmp_path / "a.geojsonl", f"{good}\n{{broken\n{good}\n"))
    assert len(await features(pipeline, written(tmp_path / "b.geojsonl", f"\ufeff{good}\n\n{good}\n"))) == 2


async def test_lines_in_a_json_file_are_all_read(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver would take the first line for the whole file."""
    line = json.dumps({"geometry": None, "type": "Feature", "properties": {"a": 1}})
    done = await pipeline.to("Csv", written(tmp_path / "a.json", f"{line}\n{line}\n{line}\n"))
    assert done.facts.feature_count == 3


async def test_old_crs_members_are_honoured(pipeline: Pipeline, tmp_path: Path) -> None:
    """GeoJSON of 2008 may name its system."""
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}
    path = write_geojson(tmp_path / "a.geojson", [point(1113194.9079327357, 0, a=1)], crs=crs)
    (found,) = readers.geojson((await pipeline.to("GeoJson", (await pipeline.to("GeoPackage", path)).path)).path)
    assert found["geometry"] == {"type": "Point", "coordinates": [10.0, 0.0]}


@pytest.mark.parametrize("language", [0x00, 0x57])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-8"])
async def test_text_of_shapefiles_without_a_cpg(
    pipeline: Pipeline, tmp_path: Path, encoding: str, language: int
) -> None:
    """UTF-8 if valid, otherwise Windows' encoding, whatever the language byte says."""
    done = await pipeline.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, name="Köln")]))
    odd = tmp_path / "odd.zip"
    with zipfile.ZipFile(done.path) as source, zipfile.ZipFile(odd, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith(".dbf"):
                value = "Köln".encode(encoding)
                content = content.replace("Köln".encode().ljust(8), value.ljust(8))
                content = content[:29] + bytes([language]) + content[30:]
            if not name.endswith(".cpg"):
                target.writestr(name, content)
    (found,) = await features(pipeline, odd)
    assert found["properties"] == {"name": "Köln"}


async def test_gml_keeps_codes_and_dates(pipeline: Pipeline, tmp_path: Path) -> None:
    """Types follow from all values; numeric-looking codes remain text."""
    rows = [point(1, 2, code="00501", n=1, r=1.5, yes=True, day="2024-02-29"), point(3, 4, code="10001", n=22, r=2.0)]
    done = await pipeline.to("Gml", write_geojson(tmp_path / "a.geojson", rows))
    first, second = await features(pipeline, done.path)
    assert first["properties"] == {"code": "00501", "n": 1, "r": 1.5, "yes": True, "day": "2024-02-29"}
    assert second["properties"] == {"code": "10001", "n": 22, "r": 2.0, "yes": None, "day": None}


def geoparquet(path: Path, crs: object, *, geo: bool = True) -> Path:
    """A table with a point in WKB and a column of every unusual type."""
    wkb = bytes.fromhex("0101000000000000000000F03F0000000000000040")
    columns = {
        "geometry": pa.array([wkb, None]),
        "names": pa.array([["a", "b"], None]),
        "price": pa.array(["1.50", "2.25"]).cast(pa.decimal128(8, 2)),
        "kind": pa.array(["x", "y"]).dictionary_encode(),
    }
    column = {"encoding": "WKB", "geometry_types": [], **({} if crs is ... else {"crs": crs})}
    document = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    metadata = {b"geo": json.dumps(document).encode()} if geo else {}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), path)
    return path


async def test_geoparquet_of_others(pipeline: Pipeline, tmp_path: Path) -> None:
    """Without a crs, it is in longitude and latitude; lists, decimals and dictionaries become column values."""
    first, second = await features(pipeline, geoparquet(tmp_path / "a.parquet", ...))
    assert first["geometry"] == {"type": "Point", "coordinates": [1.0, 2.0]}
    assert first["properties"] == {"names": ["a", "b"], "price": 1.5, "kind": "x"}
    assert second["geometry"] is None


async def test_geoparquet_of_an_unknown_system_needs_source_epsg(pipeline: Pipeline, tmp_path: Path) -> None:
    """A null crs means unknown; so does a file that declares no geometry."""
    for path in (geoparquet(tmp_path / "a.parquet", None), geoparquet(tmp_path / "b.parquet", None, geo=False)):
        with pytest.raises(Rejection, match="sourceEpsg"):
            await features(pipeline, path)
        assert len(await features(pipeline, path, source_epsg=4326)) == 2


SHAPES = {
    "CIRCULARSTRING (0 0,1 1,2 0)": "LineString",
    "CURVEPOLYGON (CIRCULARSTRING (0 0,1 1,2 0,1 -1,0 0))": "Polygon",
    "MULTICURVE (CIRCULARSTRING (0 0,1 1,2 0),(5 5,6 6))": "MultiLineString",
    "POLYHEDRALSURFACE Z (((0 0 0,0 1 0,1 1 0,0 0 0)),((0 0 0,0 1 0,0 1 1,0 0 0)))": "MultiPolygon",
    "TIN Z (((0 0 0,0 1 0,1 1 0,0 0 0)))": "MultiPolygon",
    "GEOMETRYCOLLECTION Z (TIN Z (((0 0 0,0 1 0,1 1 0,0 0 0))),POLYGON Z ((0 0 0,0 1 0,1 1 0,0 0 0)))": (
        "GeometryCollection"
    ),
}


@pytest.mark.parametrize("wkt", SHAPES)
async def test_curves_and_surfaces_go_into_targets_that_know_neither(
    pipeline: Pipeline, tmp_path: Path, wkt: str
) -> None:
    """They become lines of short segments and polygons, under the corresponding simple type."""
    path = written(tmp_path / "a.csv", f'name,wkt\na,"{wkt}"\n')
    for output in ("GeoJson", "Shapefile", "GeoParquet"):
        done = await pipeline.to(output, path, source_epsg=4326)
        assert done.facts.geometry_type == SHAPES[wkt]
        assert readers.read_content(done.plan.target.token, done.path).features == 1
        assert any("curves" in warning for warning in done.output.warnings) is ("CURVE" in wkt or "CIRCULAR" in wkt)
        told = "Surfaces of triangles or other areas (TIN, PolyhedralSurface, Triangle; 1) became polygons"
        assert any(told in warning for warning in done.output.warnings) is ("TIN" in wkt or "SURFACE" in wkt)


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n\x1a"])
async def test_a_dxf_that_is_cut_off_is_refused(pipeline: Pipeline, tmp_path: Path, ending: bytes) -> None:
    """The driver would convert the part that exists; the end marker is missing."""
    rows = write_geojson(tmp_path / "a.geojson", [point(1, 2), point(3, 4)])
    whole = (await pipeline.to("Dxf", rows)).path.read_bytes().rstrip()
    (tmp_path / "whole.dxf").write_bytes(whole + ending)
    assert len(await features(pipeline, tmp_path / "whole.dxf", source_epsg=4326)) == 2
    (tmp_path / "cut.dxf").write_bytes(whole[: whole.rindex(b"POINT")] + ending)
    with pytest.raises(Rejection, match="not a valid DXF file: the mark EOF at its end is missing, so it is truncated"):
        await features(pipeline, tmp_path / "cut.dxf", source_epsg=4326)


@pytest.mark.parametrize("output", ["GeoJson", "GeoJsonSeq", "Kml", "Kmz", "Csv", "GeoParquet"])
async def test_curves_in_collections_are_no_less_than_others(pipeline: Pipeline, tmp_path: Path, output: str) -> None:
    """For targets without curves, the converter would leave such collections empty."""
    wkt = "GEOMETRYCOLLECTION (CIRCULARSTRING (0 0,1 1,2 0),POINT (5 5))"
    table = written(tmp_path / "a.csv", f'name;wkt\na;"{wkt}"\n')
    curves = (await pipeline.to("GeoPackage", table, source_epsg=4326)).path
    done = await pipeline.to(output, curves)
    assert any("curves" in warning for warning in done.output.warnings)
    back = done.path if output == "GeoJson" else (await pipeline.to("GeoJson", done.path, source_epsg=4326)).path
    (found,) = readers.geojson(back)
    (line, point) = json.loads(json.dumps(found["geometry"]))["geometries"]
    assert (line["type"], point["coordinates"][:2]) == ("LineString", [5.0, 5.0])
    assert len(line["coordinates"]) > 40


async def test_views_and_virtual_tables_of_a_database_are_not_opened(pipeline: Pipeline, tmp_path: Path) -> None:
    """They could read other files or never end."""
    path = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE towns (name TEXT)")
        connection.execute("INSERT INTO towns VALUES ('Köln')")
        connection.execute(f"CREATE VIEW endless AS {ENDLESS}")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(word)")
        connection.commit()
    (found,) = await features(pipeline, path)
    assert found["properties"] == {"name": "Köln"}


@pytest.mark.parametrize("extension", CLOSED)
async def test_a_vrt_under_another_name_opens_nothing(pipeline: Pipeline, tmp_path: Path, extension: str) -> None:
    """Drivers are chosen by content, so all except the format's own are disabled."""
    other = write_geojson(tmp_path / "other.geojson", [point(1, 2, name="canary")])
    layer = f'<OGRVRTLayer name="other"><SrcDataSource>{other}</SrcDataSource></OGRVRTLayer>'
    path = written(tmp_path / f"a.{extension}", f"<OGRVRTDataSource>{layer}</OGRVRTDataSource>")
    assert "canary" not in await outcome(pipeline, path)


async def outcome(pipeline: Pipeline, path: Path) -> str:
    """The output as text, or the message of the refusal."""
    try:
        return (await pipeline.to("Csv" if path.suffix != ".csv" else "Kml", path)).path.read_text(encoding="utf-8")
    except Rejection as rejection:
        return rejection.message


@pytest.mark.parametrize("extension", BINARY_OR_MARKUP)
async def test_garbage_is_refused_in_plain_words(pipeline: Pipeline, tmp_path: Path, extension: str) -> None:
    """Whatever the extension promised."""
    with pytest.raises(Rejection) as caught:
        await pipeline.to("Csv", written(tmp_path / f"a.{extension}", gzip.compress(b"garbage" * 100)))
    assert not any(word in caught.value.message for word in ("ERROR", "FAILURE", "in0", "Traceback", str(tmp_path)))


async def test_hostile_column_and_layer_names_are_only_names(pipeline: Pipeline, tmp_path: Path) -> None:
    """Not SQL, options or paths."""
    names = ['a"; DROP TABLE in0; --', "-sql", "@x", "../../x", "a\nb", "__geom", "__fid", "'"]
    rows = [point(1, 2, **dict.fromkeys(names, "v"))]
    path = write_geojson(tmp_path / "a.geojson", rows, name='-overwrite"; --')
    for output in ("Shapefile", "GeoPackage", "Gpx", "Csv", "Dxf", "Gml", "Kml"):
        done = await pipeline.to(output, path)
        assert readers.read_content(done.plan.target.token, done.path).features == 1


async def test_polygons_keep_every_part(pipeline: Pipeline, tmp_path: Path) -> None:
    """A table of areas goes through a spreadsheet's WKT column unchanged."""
    path = write_geojson(tmp_path / "a.geojson", [polygon(name="a")])
    there = await pipeline.to("Xlsx", path)
    (found,) = await features(pipeline, there.path, source_epsg=4326)
    assert found["geometry"] == polygon()["geometry"]


async def test_what_a_gpx_s_extensions_lose_by_being_taken_for_numbers_is_told(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Nothing in the file states their types, and the driver guesses from the values."""
    path = tmp_path / "a.gpx"
    values = "<o:code>00501</o:code><o:word>x1</o:word><o:big>5000000000</o:big>"
    path.write_text(
        '<gpx version="1.1" creator="x" xmlns="http://www.topografix.com/GPX/1/1" xmlns:o="http://osgeo.org/gdal">'
        f'<wpt lat="1" lon="2"><name>a</name><extensions>{values}</extensions></wpt></gpx>'
    )
    for output in ("GeoJson", "Csv"):
        done = await pipeline.to(output, path)
        told = [warning for warning in done.output.warnings if "leading zeros" in warning]
        assert len(told) == 1
        assert ("code" in told[0], "big" in told[0], "word" in told[0]) == (True, True, False)


@pytest.mark.parametrize(("extension", "output"), [("geojsonl", "GeoJson"), ("geojson", "GeoJsonSeq")])
async def test_names_of_members_that_differ_in_case_alone(
    either: Pipeline, tmp_path: Path, extension: str, output: str
) -> None:
    """The driver of GeoJSON keeps both, and that of lines numbers one: what is told is what was written."""
    path = tmp_path / f"a.{extension}"
    path.write_text(json.dumps(point(1, 2, NAME="a", Name="b")))
    directory, source = either.receive(path)
    target = choose_target(source.format, output)
    plan = plan_conversion(source, target, scan(path).facts("a"), ConversionRequest(), either.engine.catalogue)
    async with either.engine.session(either.run, target) as run:
        await either.engine.convert(run, source, plan, directory)
        assert not await verify_output(either.engine, run, source, plan, directory)
    written = json.loads((await either.engine.collect(plan, directory)).path.read_text())
    (properties,) = [row["properties"] for row in written.get("features", [written])]
    assert list(properties) == [column.written for column in plan.datasets[0].columns]
    is_renamed = list(properties) != ["NAME", "Name"]
    assert is_renamed == (output == "GeoJsonSeq")
    assert any("renamed" in warning for warning in plan.warnings) == is_renamed
