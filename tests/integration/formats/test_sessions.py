"""One run that reads, converts and verifies gives the same results as several runs through the work file."""

import asyncio
import csv
import json
import re
import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path

import msgspec
import pytest
from anyio import run_process

from sandbox.command import Command, Limits
from sandbox.verdict import Ending, Verdict
from service.engine import session_loading
from service.engine.environment import MEMORY_DRIVERS, converter_environment
from service.engine.jailed import readback
from service.engine.session import Answer, Session
from service.engine.workspace import FOLDER, OUT, Run
from service.errors import Rejection
from service.formats.facts import Layer
from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.verify_output import verify_output
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Json, Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

MANY = 500
"""From so many features on, a quick driver reads a file once more in place of a copy in memory."""
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- a private directory is made in it
MEMBERS = (
    '<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">{}'
    "</ogr:FeatureCollection>"
)
SCHEMA = (
    "<GMLFeatureClassList><GMLFeatureClass><Name>a</Name><ElementPath>a</ElementPath><PropertyDefn><Name>b</Name>"
    "<ElementPath>b</ElementPath><Type>String</Type></PropertyDefn></GMLFeatureClass></GMLFeatureClassList>"
)
MEMBER = "<gml:featureMember><ogr:a><ogr:b>1</ogr:b></ogr:a></gml:featureMember>"
UNLIKE = re.compile(r"gpkg_contents|metadata|Metadata|MDI key|^</GDAL", re.MULTILINE)
"""Times, and what some drivers say of a file besides its data."""
TIMED = re.compile(r"history|_time|statistics")
"""Tables of SpatiaLite with times."""
USUAL_TARGETS = ("GeoJson", "Shapefile")
PLAIN_TARGETS = ("GeoJson", "Shapefile", "Csv", "Kml", "FlatGeobuf", "MapInfo", "GeoPackage", "Xlsx")
PECULIAR = ("Gml", "Gpx", "Dxf", "Wkt", "Ods", "SpatiaLite", "GeoParquet")
"""Targets of which the driver is told more than names, or writes something else than what is delivered."""
TARGETS = (*PLAIN_TARGETS, *PECULIAR)
LINE = geometry("LineString", [[0, 0, 5], [1, 1, 6]])
AREA = geometry("Polygon", [[[0, 0], [4, 0], [4, 4], [0, 0]]])
CONTENTS: Mapping[str, list[Json]] = {
    "points": [
        point(1.5, 2.25, name="a ", code="00501", n=1, v=0.1, big=2**60, yes=True, day="2020-02-03", empty=""),
        point(-3, 4, name='Ünï\n"quoted"', code="", n=-20, v=1e300, big=None, yes=None, day=None, empty=None),
        feature(None, name=None, code="x" * 300, n=None, v=None, big=5, yes=False, day=None, empty=None),
    ],
    "long names": [point(1, 2, population_2020=1, population_2021=2.5, POPULATION_X="z"), point(3, 4)],
    "mixed": [point(1, 2, a=1), feature(LINE, a=2), feature(AREA, a=3)],
    "lines in space": [feature(LINE, a=1), feature(None, a=2)],
    "a collection": [feature({"type": "GeometryCollection", "geometries": [point(1, 2)["geometry"], LINE]}, a=1)],
    "times": [point(1, 2, at="2020-01-02T03:04:05Z", b=1), point(1, 2, at=None, b=2)],
    "names alike": [point(1, 2, name="a", Name="b"), point(3, 4, name="c", Name="d")],
    "lists": [point(1, 2, tags=["a", "b"], b={"c": 1})],
    "at the date line": [feature(geometry("LineString", [[170, 0], [190, 1]]), a=1)],
}
SOURCES: Mapping[str, tuple[str, ...]] = {
    "geojson": (),
    "zip": ("-f", "ESRI Shapefile", "-lco", "ENCODING=UTF-8"),
    "gpkg": ("-f", "GPKG"),
    "kml": ("-f", "KML"),
    "gml": ("-f", "GML", "-dsco", "XSISCHEMA=OFF"),
    "fgb": ("-f", "FlatGeobuf"),
    "csv": ("-f", "CSV", "-lco", "GEOMETRY=AS_XY"),
}


class Counted:
    """A run that counts commands and records their launchers."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.commands: list[Command] = []

    async def __call__(self, command: Command) -> Verdict:
        self.commands.append(command)
        return await self._run(command)


async def test_a_run_that_is_abandoned_while_it_answers_has_not_crashed(converters: Converters) -> None:
    """A crash would begin the file anew, and be told to operators."""
    host, directory, verdicts = converters.engine.capabilities, converters.new_directory(), list[Verdict]()

    async def run(command: Command) -> Verdict:
        verdicts.append(await converters.run(command))
        return verdicts[-1]

    write_geojson(directory / "in.geojson", [point(1, 2, a=number) for number in range(20_000)])
    drivers = ("GeoJSON", *MEMORY_DRIVERS)
    async with Session(run, (), {}) as held:
        held.begin(host.ogr2ogr, directory, converter_environment(host, drivers), Limits())
        assert (await held.open("in.geojson", drivers, (), then=("load", "", "10"))).ok
        await held.abandon()
    assert [verdict.ending for verdict in verdicts] == [Ending.EXIT]


async def test_a_table_with_other_columns_takes_the_memory_of_the_first(converters: Converters) -> None:
    """Both were held until the second was complete, so that 90 MB of GeoJSON to DXF took 297 MB."""
    host, directory, peaks = converters.engine.capabilities, converters.new_directory(), list[int]()
    texts = {f"text {number}": f"a text of some length {number}" for number in range(12)}
    write_geojson(directory / "in.geojson", [point(1, 2, **texts)] * 30_000)
    drivers = ("GeoJSON", *MEMORY_DRIVERS)

    async def run(command: Command) -> Verdict:
        verdict = await converters.run(command)
        peaks.append(verdict.peak_memory_bytes)
        return verdict

    async with Session(run, (), {}) as held:
        for columns in ((), [(number, name, "same") for number, name in enumerate(texts)][1:]):
            held.begin(host.ogr2ogr, directory, converter_environment(host, drivers), Limits())
            assert (await held.open("in.geojson", drivers, (), then=("load", "", "10"))).ok
            assert (await held.ask(Answer, "load", "", "10")).ok
            if columns:
                await held.alter("t0", "t0", columns)
            await held.finish()
    loaded, altered = peaks
    assert altered - loaded < 10 << 20


async def test_a_file_that_does_not_say_how_much_is_in_it_has_a_share_while_it_is_read(converters: Converters) -> None:
    """The driver of GML knows the number of features only if it has read the file for its schema."""
    shares = set[float]()
    for count in (20_000, 100_000, 500_000):  # a host that reads these in no time reports nothing
        async with converters.open_run(("GML", *MEMORY_DRIVERS)) as (held, directory):
            (directory / "in.gml").write_text(MEMBERS.format(MEMBER * count))
            (directory / "in.gfs").write_text(SCHEMA)
            assert (await held.open("in.gml", ("GML",), ("WRITE_GFS=NO",))).ok
            loaded = asyncio.ensure_future(held.ask(Answer, "load", "", "10"))
            while not loaded.done():
                await asyncio.wait([loaded], timeout=0.01)
                shares |= set(filter(None, [held.share]))
            assert loaded.result().ok
        if any(0 < share < 1 for share in shares):
            return
    pytest.fail("no share was reported")


class Ways:
    """Both ways in one jail."""

    def __init__(self, converters: Converters) -> None:
        self.converters = converters
        self.runs = Counted(converters.run)
        self.held = Pipeline(converters, self.runs, has_sessions=True)
        self.filed = Pipeline(converters)

    async def compare(self, path: Path, output: str, **wishes: object) -> int:
        """Convert a file both ways, with the same outcome; return how many runs the session took for the result."""
        before = len(self.runs.commands)
        held = await outcome(self.held, path, output, **wishes)
        taken = sum(readback.__name__ not in command.argv for command in self.runs.commands[before:])
        assert held == await outcome(self.filed, path, output, **wishes), (path.name, output)
        return taken


@pytest.fixture
def ways(converters: Converters) -> Ways:
    """Both ways, if the fork server can start sessions."""
    return Ways(converters)


async def as_source(ways: Ways, kind: str, features: list[Json], *options: str) -> Path:
    """`features` as a file of `kind`, written by ogr2ogr."""
    path = await as_possible_source(ways, kind, features, *options)
    assert path is not None
    return path


async def as_possible_source(ways: Ways, kind: str, features: list[Json], *options: str) -> Path | None:
    """The same; None if it cannot hold them."""
    directory = ways.converters.new_directory()
    written = write_geojson(directory / "in.geojson", features)
    if kind == "geojson":
        return written
    (directory / kind).mkdir()
    path = directory / kind / f"in.{'shp' if kind == 'zip' else kind}"
    name = str(path.relative_to(directory))
    if not await ways.converters.ogr2ogr(directory, *SOURCES[kind], *options, name, written.name) or not path.exists():
        return None
    if kind == "zip":
        shutil.make_archive(str(directory / "in"), "zip", path.parent)
        return directory / "in.zip"
    return path


def content(path: Path) -> object:
    """An output's content without the times at which it was written."""
    if path.suffix in {".zip", ".xlsx", ".ods"}:
        with zipfile.ZipFile(path) as archive:
            return {name: _dateless(name, archive.read(name)) for name in sorted(archive.namelist())}
    if path.suffix == ".sqlite":
        return _tables(path)
    if path.suffix == ".gpkg":
        with closing(sqlite3.connect(path)) as connection:
            return [line for line in connection.iterdump() if not UNLIKE.search(line)]
    return path.read_bytes()


def _tables(path: Path) -> dict[str, object]:
    """All tables but virtual ones, which need a library to be read, and those with times."""
    with closing(sqlite3.connect(path)) as connection:
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'").fetchall()
        return {
            name: (sql, connection.execute(f'SELECT * FROM "{name}"').fetchall())  # noqa: S608 -- ours
            for name, sql in made
            if not TIMED.search(name)
        }


def _dateless(name: str, data: bytes) -> bytes:
    """A table without its date, and without uninitialized memory behind column names."""
    if not name.endswith((".dbf", ".dat")):
        return data
    end = int.from_bytes(data[8:10], "little")
    columns = [data[at : at + 11].partition(b"\0")[0] + data[at + 11 : at + 32] for at in range(32, end, 32)]
    return data[:1] + data[4:32] + b"".join(columns) + data[end:]


async def outcome(pipeline: Pipeline, path: Path, output: str, **wishes: object) -> tuple[object, ...]:
    """Everything that a client sees of a conversion, also of its verification."""
    request = msgspec.convert({"output": output, **wishes}, ConversionRequest)
    try:
        done = await pipeline.convert(path, request, verifies=True)
    except Rejection as refusal:
        return (str(refusal),)
    told = (*done.output.warnings, *done.differences)
    return content(done.path), told, done.output.output_epsg, *map(_facts, done.facts.layers)


def _facts(layer: Layer) -> Layer:
    """Facts without the name of a table and the last digits of numbers: SQLite rounds sums otherwise since 3.43."""
    extent = layer.extent and tuple(round(number, 9) for number in layer.extent)
    fields = tuple(
        msgspec.structs.replace(field, total=field.total and float(f"{field.total:.14g}")) for field in layer.fields
    )
    return msgspec.structs.replace(layer, table="", extent=extent, fields=fields)


@pytest.mark.parametrize("name", CONTENTS)
async def test_both_ways_give_the_same(ways: Ways, name: str) -> None:
    """Bytes, warnings, facts and refusals, from every source into every target, and all contents of both."""
    turn = list(CONTENTS).index(name)
    for number, kind in enumerate(SOURCES):
        source = await as_possible_source(ways, kind, CONTENTS[name])
        wishes = {"source_epsg": 4326} if kind == "csv" else {}
        if source is not None:
            usual = USUAL_TARGETS[(number + turn) % len(USUAL_TARGETS)]
            for output in PLAIN_TARGETS if name == "points" else (usual,):
                await ways.compare(source, output, **wishes)


NO_INDEX = ("-lco", "SPATIAL_INDEX=NO")
LARGE: Mapping[str, tuple[list[Json], tuple[str, ...], tuple[str, ...]]] = {
    "plain": (
        [point(n % 90, n % 80, name=f"p{n} ", n=n if n % 3 else None, v=n / 7, day="2020-02-03") for n in range(MANY)],
        PLAIN_TARGETS,
        (),
    ),
    "long names": (
        [point(n % 90, 1, population_2020=n, population_2021=n / 2) for n in range(MANY)],
        USUAL_TARGETS,
        (),
    ),
    "an empty area": (
        [feature(AREA if n else geometry("Polygon", []), n=n) for n in reversed(range(MANY))],
        USUAL_TARGETS,
        NO_INDEX,  # with one, newer drivers refuse features without a place
    ),
}
"""Features, the targets into which they are converted, and with which options their source is written."""


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("kind", ["gpkg", "fgb"])
async def test_both_ways_give_the_same_for_large_files(ways: Ways, kind: str, name: str) -> None:
    """Bytes, warnings, facts and refusals, whether or not the features are copied into memory."""
    features, targets, options = LARGE[name]
    source = await as_source(ways, kind, features, *options)
    for output in targets:
        await ways.compare(source, output)


@pytest.mark.parametrize("rows", [1, 2, 3 * MANY])
async def test_a_shapefile_is_the_one_that_ogr2ogr_writes(ways: Ways, rows: int) -> None:
    """Byte for byte, with the mark at the end of its table, although the driver was told not to write one."""
    features = [point(n % 90, n % 80, name=f"p{n}" * n if n < 9 else "\x1a", n=n % 3 or None) for n in range(rows)]
    source = await as_source(ways, "gpkg", features)
    directory = source.parent.parent
    assert await ways.converters.ogr2ogr(directory, *SOURCES["zip"], "own", "gpkg/in.gpkg")
    own = {file.name: _dateless(file.name, file.read_bytes()) for file in sorted((directory / "own").iterdir())}
    assert own["in.dbf"].endswith(b"\x1a")
    for way in (ways.held, ways.filed):
        assert content((await way.to("Shapefile", source)).path) == own


@pytest.mark.parametrize("name", ["-makevalid", "-2019 roads", "-sql", "t0"])
async def test_the_name_of_a_layer_is_no_option(ways: Ways, name: str) -> None:
    """A large layer that is read again in its file is converted as it is, whatever it is called."""
    crossing = geometry("Polygon", [[[0, 0], [0, 1], [1, 0], [1, 1], [0, 0]]])
    directory = ways.converters.new_directory()
    # the name comes with the features: newer versions of ogr2ogr take it for an option after -nln, too
    written = write_geojson(directory / "in.geojson", [feature(crossing, n=n) for n in range(MANY)], name=name)
    assert await ways.converters.ogr2ogr(directory, "-f", "FlatGeobuf", "in.fgb", written.name)
    done = await ways.held.to("GeoJson", directory / "in.fgb")
    (layer,) = done.facts.layers
    assert layer.name == name
    shapes = [found["geometry"] for found in json.loads(done.path.read_text())["features"]]
    assert shapes == [crossing] * MANY
    await ways.compare(directory / "in.fgb", "GeoJson")


async def test_one_run_is_enough(ways: Ways, tmp_path: Path) -> None:
    """For conversions that change nothing except names; a program of ours reads KML where GDAL cannot.

    Without GDAL, one run each reads, counts and writes, and two more look for NaN where numbers are missing.
    """
    runs = {}
    workbook = write_geojson(tmp_path / "in.geojson", CONTENTS["long names"])
    await ways.held.to("Xlsx", workbook)
    assert len(ways.runs.commands) == 1
    for kind in SOURCES:
        source = await as_source(ways, kind, CONTENTS["long names"])
        wishes = {"source_epsg": 4326} if kind == "csv" else {}
        runs[kind] = await ways.compare(source, "GeoJson" if kind != "geojson" else "Shapefile", **wishes)
    takes_program = bool(ways.converters.engine.capabilities.spare_for(["LIBKML"]))
    assert runs == dict.fromkeys(SOURCES, 1) | {"kml": 5 if takes_program else 1}


FROM_RESULTS = ("MapInfo", "SpatiaLite", "Wkt", "Ods", "Gpx", "Dxf", "GeoParquet")
"""Formats that `as_source` does not make; results in them are converted again."""
SHAPED: Mapping[str, list[Json]] = {
    "points": CONTENTS["points"],
    "many": [point(n % 90, n % 80, name=f"p{n} ", n=n if n % 3 else None, v=n / 7) for n in range(MANY)],
    "points in space": [point(1, 2, name="a", n=1), feature(geometry("Point", [3, 4, 5.5]), name="b", n=2)],
    "its own columns": [feature(geometry("Point", [3, 4, 5]), ele=7, Layer="x", Text="y", geometryProperty=1, b=2)],
    "lines": [
        feature(geometry("LineString", [[0, 0], [1, 1]]), a=1),
        feature(geometry("LineString", [[2, 2], [3, 3]])),
    ],
    "lines with and without elevations": [
        feature(geometry("LineString", [[0, 0], [1, 1]]), a=1),
        feature(geometry("LineString", [[2, 2, 5], [3, 3, 6]]), a=2),
    ],
    "parts": [feature(geometry("MultiLineString", [[[0, 0, 1], [1, 1, 2]], [[2, 2, 3], [3, 3, 4]]]), a=1, b=2)],
    "several points": [feature(geometry("MultiPoint", [[0, 0], [1, 1]]), a=1), point(5, 6, a=2)],
    "a column called as a condition": [point(1, 2, OGR_GEOMETRY="a"), point(3, 4), feature(None, OGR_GEOMETRY="b")],
    "live texts": [point(1, 2, name=" of:=1+1", b="<i>"), point(3, 4, name="plain", b="c")],
}


@pytest.mark.parametrize("output", PECULIAR)
@pytest.mark.parametrize("name", SHAPED)
async def test_both_ways_give_the_same_for_peculiar_targets(ways: Ways, name: str, output: str) -> None:
    """Bytes, warnings, facts and refusals, whether the open run finishes the result or programs of ours do."""
    source = await as_source(ways, "gpkg", SHAPED[name])
    await ways.compare(source, output)


@pytest.mark.parametrize("kind", FROM_RESULTS)
async def test_both_ways_give_the_same_from_results(ways: Ways, tmp_path: Path, kind: str) -> None:
    """In one run, or two if the first reads GeoParquet in place of GDAL."""
    written = write_geojson(tmp_path / "in.geojson", [point(n, 2, name=f"a{n}", n=n, v=n / 2) for n in range(3)])
    source = (await ways.filed.to(kind, written)).path
    wishes = {} if kind in {"MapInfo", "SpatiaLite", "Gpx", "GeoParquet"} else {"source_epsg": 4326}
    takes_program = kind == "GeoParquet" and not ways.converters.engine.capabilities.can_write("Parquet")
    for output in ("GeoJson", "Shapefile", "GeoPackage", "Csv"):
        assert await ways.compare(source, output, **wishes) == 1 + takes_program


@pytest.mark.parametrize("features", [1, MANY])
@pytest.mark.parametrize("output", TARGETS)
async def test_one_run_is_enough_for_every_target(ways: Ways, output: str, features: int) -> None:
    """One writes, finishes and reads back; where GDAL cannot write GeoParquet, a program of ours takes another run."""
    kind = "fgb" if output == "GeoPackage" else "gpkg"
    source = await as_source(
        ways, kind, [feature(geometry("Point", [n, 2, 3]), name="a", n=n) for n in range(features)]
    )
    await ways.held.to(output, source)
    takes_program = output == "GeoParquet" and not ways.converters.engine.capabilities.can_write("Parquet")
    assert len(ways.runs.commands) == 1 + takes_program


@pytest.mark.parametrize("output", ["Shapefile", "FlatGeobuf", "Dxf", "Gpx", "GeoJson"])
@pytest.mark.parametrize("features", [1, MANY])
async def test_one_run_selects_features(ways: Ways, output: str, features: int) -> None:
    """By families, if one dataset cannot hold all, or those with geometry, however large the file is."""
    shapes = [geometry("Point", [1, 2]), geometry("MultiPoint", [[1, 2], [3, 4]])]
    if output == "Shapefile":
        shapes += [LINE, AREA]
    rows = [feature(shape, n=n, name="a") for n in range(features) for shape in [*shapes, None]]
    source = await as_source(ways, "gpkg", rows)
    assert await ways.compare(source, output) == 1


ODD_CELLS: Mapping[str, list[object]] = {
    "text": ["a\rb", "a\r\nb\r", "a\n\rb", "\n", " ", "", "x" * 300, 'a, "b"', None],
    "number": [0.1 + 0.2, 1 / 3, 5e-324, 1234567890.1234567, 2.0**53 + 2, 1e22, None],
    "whole": [2**53 + 1, -(2**63), 0, None],
    "truth": [True, False, None],
    "day": ["2020-02-29", "1899-12-31", None],
    "moment": ["2020-02-29T01:02:03.456Z", "1900-01-01T00:00:00", "2020-02-29T23:59:59.999+05:45", None],
}


@pytest.mark.parametrize(
    "places", [[[1 / 3, 1e-10], [0.1 + 0.2, 45]], [[1 / 3, 1e-10, 7.000000000000001]], [None, [1, 2]]]
)
@pytest.mark.parametrize("output", ["Ods", "Xlsx"])
async def test_an_open_run_writes_the_cells_that_others_write(
    ways: Ways, output: str, places: list[Json | None]
) -> None:
    """They reach the workbook through CSV there. FlatGeobuf of newer releases holds no features without geometry."""
    shapes = [place and geometry("Point", place) for place in places]
    cells = [{name: values[n % len(values)] for name, values in ODD_CELLS.items()} for n in range(36)]
    features = [feature(shapes[n % len(shapes)], **values) for n, values in enumerate(cells)]
    for kind in ("geojson", "gpkg", *["fgb"] * all(places)):
        assert await ways.compare(await as_source(ways, kind, features), output) == 1


@pytest.mark.parametrize("output", ["Ods", "Xlsx"])
async def test_markup_in_workbooks_takes_one_run(ways: Ways, output: str) -> None:
    """Only where a program would take it for markup, it must be changed."""
    source = await as_source(ways, "geojson", [point(1, 2, a="<b>bold</b>", n=n) for n in range(2)])
    assert await ways.compare(source, output) == 1


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_one_run_reads_a_database_with_any_journal(ways: Ways, journal: str) -> None:
    """One with a write-ahead log cannot be locked once for all statements, as others are."""
    path = await as_source(ways, "gpkg", CONTENTS["points"])
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(f"PRAGMA journal_mode = {journal}").fetchone() == (journal,)
    for output in USUAL_TARGETS:
        assert await ways.compare(path, output) == 1


async def test_one_run_is_enough_for_mapinfo_in_wgs_84(ways: Ways, tmp_path: Path) -> None:
    """Its driver records this system as it is, so what it has recorded needs no further runs."""
    path = write_geojson(tmp_path / "in.geojson", [point(9, 51, name="a")])
    result = await ways.held.to("MapInfo", path)
    assert len(ways.runs.commands) == 1
    assert not result.output.warnings
    back = await ways.held.to("GeoJson", result.path)
    (found,) = json.loads(back.path.read_text())["features"]
    assert found["geometry"]["coordinates"] == [9, 51]


TABLES: Mapping[str, tuple[str, bool]] = {
    "plain": ("x,y,name,rank\n1.5,2,a,001\n-3,4.25,b,2\n", True),
    "in space": ("x,y,z,name\n1,2,3,a\n4,5,6.5,b\n", True),
    "no places": ("name,rank\na,1\nb,2\n", True),
    "a row without": ("x,y,name\n1,2,a\n,4,b\n", False),
    "rows without any": ("x,y,name\n1,2,a\n,,b\n3,4.5,c\n,,d\n", True),
    "rows without any in space": ("x,y,z,name\n1,2,3,a\n,,,b\n3,4,5.5,c\n", True),
    "rows with one of each": ("x,y,name\n1,2,a\n,3,b\n4,,c\n", False),
    "many columns": (f"x,y,{','.join(f'c{n}' for n in range(200))}\n" + f"1,2{',3' * 200}\n" * 2, True),
    "decimal commas": ('x,y,name\n"1,5","2,5",a\n"3,5","4,5",b\n', False),
    "two pairs": ("x,y,lon,lat,name\n1,2,3,4,a\n5,6,7,8,b\n", True),
    "geometries": ("wkt,name\nPOINT (1 2),a\nPOINT (3 4),b\n", False),
    "like geometries": ("x,y,name\n1,2,Point Street\n3,4,b\n", False),
    "begins empty": ("x,y,name\n1,2,\n3,4,b\n", True),
}
"""Tables, and whether they need no work file."""


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("name", TABLES)
async def test_workbooks_give_the_same_both_ways(ways: Ways, name: str, *, typed: bool) -> None:
    """The session makes points from columns, unless the whole table has to be examined first."""
    text, is_in_session = TABLES[name]
    directory = ways.converters.new_directory()
    (directory / "in.csv").write_text(text)
    types = ["-oo", "AUTODETECT_TYPE=YES"] if typed else []
    assert await ways.converters.ogr2ogr(directory, "-f", "XLSX", *types, "in.xlsx", "in.csv")
    assert (await ways.compare(directory / "in.xlsx", "GeoPackage") == 1) is is_in_session


async def test_workbooks_with_dates_need_one_run(ways: Ways, tmp_path: Path) -> None:
    """Also if their driver would mistake the formats of their cells."""
    features = [point(number, 2, day="2024-01-02", at="2024-01-02T03:04:05.678") for number in range(3)]
    source = (await ways.filed.to("Xlsx", write_geojson(tmp_path / "in.geojson", features))).path
    assert await ways.compare(source, "GeoPackage") == 1


SEPARATED: Mapping[str, tuple[str | bytes, int]] = {
    "plain": ("x,y,name,rank\n1.5,2,a,001\n-3,4.25,b,2\n", 1),
    "half-numeric": ("lon,lat,n,m\n1,2,3,4\n3,4,n/a,5.5\n", 1),
    "half of a coordinate": ("lon,lat,n\n1,2,3\n50°30N,4,4\n", 2),
    "a row without": ("x,y,name\n1,2,a\n,4,b\n", 2),
    "rows without any": ("x,y,name\n1,2,a\n,,b\n3,4.5,c\n,,d\n", 1),
    "rows with one of each": ("x,y,name\n1,2,a\n,3,b\n4,,c\n", 2),
    "an elevation alone": ("x,y,z,name\n1,2,3,a\n,,5,b\n4,5,,c\n", 2),
    "geometries in some rows": ('wkt,name\n"LINESTRING (1 2,3 4)",a\n,b\nPOINT (3 4),c\n', 1),
    "decimal commas": ("x;y;v;name\n1,5;2,5;3,25;a\n3,5;4,5;1;b\n", 1),
    "decimal commas and points": ("x;y;v;name\n1,5;2,5;3.250;a\n3,5;4,5;1.000;b\n", 2),
    "in space": ("x,y,z,name\n1,2,3,a\n4,5,6.5,b\n", 1),
    "two pairs": ("x,y,lon,lat,name\n1,2,3,4,a\n5,6,7,8,b\n", 1),
    "geometries": ('wkt,name\n"POINT (1 2)",a\n"POINT Z (3 4 5)",b\n', 1),
    "lines": ('geom,n\n"LINESTRING (1 2,3 4)",1\n"LINESTRING (1 2,3 5)",2\n', 1),
    "geometries and points": ('wkt,name,x,y\n"POINT (1 2)",a,5,6\n"POINT (3 4)",b,7,8\n', 1),
    "geometries with a system": ('wkt,name\n"SRID=4326;POINT (1 2)",a\n"SRID=4326;POINT (3 4)",b\n', 2),
    "binary geometries": ("geom,n\n0101000000000000000000F03F0000000000000040,1\n", 1),
    "an unreadable geometry": ('wkt,name\n"POINT (1 2)",a\n"POINT (oops",b\n', 2),
    "streets": ("x,y,street\n1,2,Point Street\n3,4,Pointer Road\n5,6,Elm Street\n", 1),
    "repeated names": ("x,y,name,name,Name,\n1,2,a,b,c,d\n", 1),
    "no names": ("1,2,a\n3,4,b\n", 1),
    "no places": ("name,rank\na,1\nb,2\n", 1),
    "years as names": ("name,x,y,2019,2020\na,1,2,5,6\n", 2),
    "years as data": ("name,x,y,2019,2020\na,1,2,2021,2022\n", 2),
    "rows of other widths": ("x,y,name\n1,2,a,more,5\n3,4\n5,6,b,,\n", 1),
    "lines that are empty": ("\n\nx,y,name\n\n1,2,a\n\n\n3,4,b\n", 1),
    "quoted": ('"x","y","na""me"\n1,2,"a, ""b""\nc"\n3,4,"it\'s"\n', 1),
    "mixed types": ("x,y,a,b,c\n1,2,2020-01-02,7,2020-01-02T03:04:05Z\n3,4,2020-01-03,7.5,2020-01-02\n", 1),
    "days": ("x,y,day,number,code\n1,2,2020-01-02,7,007\n3,4,2020-02-30,7.5,8\n", 1),
    "tabs": ("x\ty\tname\n1\t2\ta, b; c\n3\t4\tb\n", 1),
    "bars": ("x|y|name\n1|2|a\n3|4|b\n", 2),
    "one column": ("name\na\nb\n", 2),
    "lines of Windows": ('x,y,name\r\n1,2,"a\r\nb"\r\n3,4,c\r\n', 1),
    "lines of old": ("x,y,name\r1,2,a\r3,4,b\r", 2),
    "a mark before": ("\ufeffx,y,name\n1,2,ä\n3,4,日本\n", 1),
    "UTF-16": ("x,y,name\n1,2,ä\n".encode("utf-16"), 2),
    "Windows-1252": ("x,y,name\n1,2,ä\n".encode("cp1252"), 2),
    "digits of other scripts": ("x,y,n\n1,2,١٢\n3,4,5\n", 2),
    "names in other scripts": ("долгота,широта,имя\n1,2,Ж\n3,4,Я\n", 1),
    "empty": ("x,y,name\n", 1),
    "infinite": ("x,y,v\n1,2,1e999\n3,4,1\n", 1),
    "large": ("x,y,v,w\n1,2,99999999999999999,123456789012345678\n3,4,1,0.1\n", 1),
}
"""Files of separated values, and how many runs their conversion takes: where a program of ours has to look, more."""


@pytest.mark.parametrize(("name", "output"), [*zip(SEPARATED, cycle(("GeoPackage", "GeoJson")), strict=False)])
async def test_separated_values_give_the_same_both_ways(ways: Ways, tmp_path: Path, name: str, output: str) -> None:
    """One run examines a file, finds its positions and types, and converts it, unless its reading could differ."""
    content, runs = SEPARATED[name]
    path = tmp_path / "in.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert (await ways.compare(path, output) == 1) is (runs == 1)


LINES = {
    "of points": "POINT (1 2)\nPOINT (3 4)\n",
    "of all": "POINT Z (1 2 3)\nLINESTRING (0 0,1 1)\nPOLYGON ((0 0,1 0,1 1,0 0))\nGEOMETRYCOLLECTION EMPTY\n",
    "with a system": "SRID=4326;POINT (1 2)\nSRID=4326;POINT (3 4)\n",
    "under a name": "wkt\nPOINT (1 2)\nPOINT (3 4)\n",
    "with a broken one": "POINT (1 2)\nPOINT (3\n",
    "with texts": "POINT (1 2)\nnothing\n\nPOINT (3 4)",
    "with more columns": "POINT (1 2)\ta\nPOINT (3 4)\tb\n",
    "with quotes": '"POINT (1 2)"\n"POINT (3 4)"\n',
    "empty": "",
}


@pytest.mark.parametrize("name", LINES)
async def test_lines_of_wkt_give_the_same_both_ways(ways: Ways, tmp_path: Path, name: str) -> None:
    """Their only column needs no search for a delimiter."""
    path = tmp_path / "in.wkt"
    path.write_text(LINES[name])
    for output in ("GeoPackage", "Csv"):
        await ways.compare(path, output, source_epsg=4326)


ROWS = (("name", "easting", "northing"), ("a", "529,090", "179,645"), ("b", "530,120", "180,245"))


@pytest.mark.parametrize("kind", [",", "\t", "|", "a sheet"])
@pytest.mark.parametrize("before", ["", "+", " ", "?", "0", "-00"])
async def test_thousands_in_coordinates_are_refused_both_ways(ways: Ways, kind: str, before: str) -> None:
    """They would place features a thousand times too close to the origin; also after a cell that is no number."""
    directory = ways.converters.new_directory()
    header, *rows = ROWS
    rows = [("c", "?", "?"), *rows] if before == "?" else [(row[0], before + row[1], row[2]) for row in rows]
    with (directory / "in.csv").open("w") as file:
        csv.writer(file, delimiter="," if kind == "a sheet" else kind).writerows([header, *rows])
    name = "in.csv"
    if kind == "a sheet":
        name = "in.xlsx"
        assert await ways.converters.ogr2ogr(directory, "-f", "XLSX", name, "in.csv")
    for way in (ways.held, ways.filed):
        (said,) = await outcome(way, directory / name, "GeoJson", source_epsg=27700)
        assert "may be decimal commas or separate thousands" in str(said)


@pytest.mark.parametrize("cells", ["529.090;179.645;1,5", "?;?;1,5\nb; 0529.090;179.645;2"])
async def test_points_in_coordinates_beside_decimal_commas_are_refused_both_ways(ways: Ways, cells: str) -> None:
    """They would place features a thousand times too close to the origin; also after a cell that is no number."""
    path = ways.converters.new_directory() / "in.csv"
    path.write_text(f"name;easting;northing;height\na;{cells}\n")
    for way in (ways.held, ways.filed):
        (said,) = await outcome(way, path, "GeoJson", source_epsg=27700)
        assert "may be decimal points or separate thousands" in str(said)


@pytest.mark.parametrize("layers", [("points", "lines in space"), ("points", "")])
async def test_sheets_of_several_layers(ways: Ways, tmp_path: Path, layers: tuple[str, str]) -> None:
    """Each with its geometry as columns, including an empty layer, which only the work file can hold."""
    source = tmp_path / "in.gpkg"
    for number, name in enumerate(layers):
        written = write_geojson(tmp_path / f"layer{number}.geojson", CONTENTS.get(name, [point(1, 2, a=1, b="c")]))
        none = [] if name else ["-where", "a > 1"]
        adds = ["-update"] if number else []
        await run_process(["ogr2ogr", "-f", "GPKG", *adds, *none, source, written])
    held = await outcome(ways.held, source, "Xlsx")
    assert held == await outcome(ways.filed, source, "Xlsx")
    assert len(held) == 3 + len(layers)


@pytest.mark.parametrize("output", ["Shapefile", "FlatGeobuf", "Kml"])
@pytest.mark.parametrize("name", ["long names", "names", "mixed"])
async def test_a_run_that_answers_nothing_is_no_loss(
    converters: Converters, tmp_path: Path, name: str, output: str
) -> None:
    """While no session can be started, such as during a restart of the fork server, results are the same."""

    async def run_without(command: Command) -> Verdict:
        if command.argv[1] == "--session":
            command = msgspec.structs.replace(command, argv=(command.argv[0], "--no-such-option"))
        return await converters.run(command)

    pipeline = Pipeline(converters, run_without, has_sessions=True)
    path = write_geojson(tmp_path / "in.geojson", CONTENTS.get(name, [point(1, 2, name="a")]))
    assert await told_after(pipeline, path, output) == await told_after(Pipeline(converters), path, output)


OUTPUTS = ("Kml", "Gml", "Gpx", "Dxf", "FlatGeobuf", "MapInfo", "Xlsx", "Ods", "OpenFileGdb", "GeoJson", "GeoJsonSeq")


@pytest.mark.parametrize("output", OUTPUTS)
async def test_a_result_that_lacks_features_is_told(ways: Ways, output: str) -> None:
    """In either way of writing: the output is replaced by that of a file with one feature less."""
    rows = [point(number, 2, name="a", n=number) for number in range(3)]
    kind = "fgb" if output.startswith("GeoJson") else "geojson"  # between JSON formats ogr2ogr takes over more
    for pipeline in (ways.held, ways.filed):
        whole = await as_source(ways, kind, rows)
        assert await told_after(pipeline, whole, output) == ()
        lesser = await as_source(ways, kind, rows[:2])
        directory, _ = pipeline.receive(lesser)
        await told_after(pipeline, lesser, output, directory)
        told = await told_after(pipeline, whole, output, replaced_by=directory / FOLDER / OUT)
        assert any("holds 2 features; 3 were expected" in warning for warning in told), told


@pytest.mark.parametrize("column", ["a", "OGC_FID", "rowid"])
@pytest.mark.parametrize("places", [[point(1, 2)["geometry"], None], [None, None]])
async def test_a_spatialite_database_is_read_back_in_full(ways: Ways, column: str, places: list[Json | None]) -> None:
    """Its driver lists no tables without geometry, and takes columns of some names for the numbers of rows."""
    source = await as_source(ways, "gpkg", [feature(place, **{column: n}) for n, place in enumerate(places)])
    assert [await told_after(way, source, "SpatiaLite") for way in (ways.held, ways.filed)] == [(), ()]


@pytest.mark.parametrize("name", ["a\nb", "a\r\nb"])
async def test_a_csv_whose_column_names_have_line_ends_is_read_back_in_full(ways: Ways, name: str) -> None:
    """Its driver takes the first line end for the end of the header, so it reads none of the columns."""
    source = await as_source(ways, "gpkg", [point(1, 2, **{name: 1, "c": 2})])
    assert [await told_after(way, source, "Csv") for way in (ways.held, ways.filed)] == [(), ()]


TALLIED: Mapping[str, tuple[list[Json], str]] = {
    "a value": ([point(1, 2, name="a", n=1), point(3, 4, name="b")], "'n' has 1 filled value; 2 were expected"),
    "a column": ([point(1, 2, name="a"), point(3, 4, name="b")], "lacks columns: 'n'"),
    "a geometry": (
        [point(1, 2, name="a", n=1), feature(None, name="b", n=2)],
        "1 feature of 'in' has geometry; 2 were expected",
    ),
    "elevations": ([point(1, 2, name="a", n=1), point(3, 4, name='"b"', n=2)], "has no elevations"),
}
"""Results that differ from what is written, and what tells it."""


@pytest.mark.parametrize("name", TALLIED)
async def test_what_a_result_of_json_lacks_is_told(ways: Ways, tmp_path: Path, name: str) -> None:
    """In the same words, whether the run that wrote it counts or another program does."""
    in_space = [feature(geometry("Point", [x, 2, 5]), name='ä"', n=x) for x in (1, 2)]
    source = await as_source(ways, "gpkg", in_space if name == "elevations" else [point(1, 2, name="ä", n=1)] * 2)
    rows, sentence = TALLIED[name]
    replacement = new_directory(tmp_path)
    write_geojson(replacement / "result.geojson", rows)
    told = [await told_after(way, source, "GeoJson", replaced_by=replacement) for way in (ways.held, ways.filed)]
    assert told[0] == told[1]
    assert any(sentence in warning for warning in told[0]), told


async def test_a_damaged_sheet_is_refused_both_ways(ways: Ways, tmp_path: Path) -> None:
    """Its driver reads a sheet once, when it is first asked anything about it."""
    table = tmp_path / "in.csv"
    table.write_text("x,y,name\n" + "".join(f"{number},2,a\n" for number in range(20)))
    await run_process(["ogr2ogr", "-f", "XLSX", tmp_path / "whole.xlsx", table])
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "in.xlsx", "w") as damaged:
        for name in whole.namelist():
            content = whole.read(name)
            half = len(content) // 2
            damaged.writestr(name, content[:half] + b"<<" + content[half:] if "sheet1" in name else content)
    for way in (ways.held, ways.filed):
        with pytest.raises(Rejection, match="damaged"):
            await way.to("GeoPackage", tmp_path / "in.xlsx", source_epsg=4326)


def new_directory(parent: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=parent))


async def told_after(
    pipeline: Pipeline, path: Path, output: str, directory: Path | None = None, *, replaced_by: Path | None = None
) -> tuple[str, ...]:
    """The warnings of verification after the output's files were replaced by others of the same names."""
    new_directory, source = pipeline.receive(path)
    directory = directory or new_directory
    target = choose_target(source.format, output)
    request = ConversionRequest(output=output)
    async with pipeline.engine.session(pipeline.run, target) as run:
        facts = await pipeline.engine.inspect(run, source, directory, request)
        plan = plan_conversion(source, target, facts, request, pipeline.engine.catalogue)
        await pipeline.engine.convert(run, source, plan, directory)
        if replaced_by is not None:
            if isinstance(run, Session):
                await run.drop_foreseen()  # what it has counted of the genuine result
            shutil.copytree(replaced_by, directory / FOLDER / OUT, dirs_exist_ok=True)
        return await verify_output(pipeline.engine, run, source, plan, directory)


TABLE = "CREATE TABLE b AS SELECT 1 AS n, 'x' AS t"
DATABASES: Mapping[str, tuple[Sequence[str], int]] = {
    "two tables": (["CREATE TABLE a (n INTEGER, t TEXT)", "INSERT INTO a VALUES (1, 'x'), (2, NULL)", TABLE], 1),
    "names with quotation marks": (
        ["""CREATE TABLE "a'b""c" ("d'e" TEXT)""", """INSERT INTO "a'b""c" VALUES ('x')"""],
        1,
    ),
    "an empty table": ([TABLE, "CREATE TABLE c (n INTEGER)"], 1),
    "a key with gaps": (["CREATE TABLE a (fid INTEGER PRIMARY KEY, t)", "INSERT INTO a VALUES (1, 'x'), (5, 'y')"], 1),
    "a key without gaps": (
        ["CREATE TABLE a (id INTEGER PRIMARY KEY, t)", "INSERT INTO a VALUES (1, 'x'), (2, 'y')"],
        1,
    ),
    "days and moments": (
        ["CREATE TABLE a (d DATE, m DATETIME)", "INSERT INTO a VALUES ('2020-02-03', '2020-02-03T04:05:06.789Z')"],
        1,
    ),
    "large integers and numbers": (
        ["CREATE TABLE a (n BIGINT, v DOUBLE, w NUMERIC)", "INSERT INTO a VALUES (1 << 60, 0.5, 1), (1, 2, 0.25)"],
        1,
    ),
    "a key with own values": (["CREATE TABLE a (id INTEGER PRIMARY KEY, t)", "INSERT INTO a VALUES (7, 'x')"], 3),
    "a key of texts": (["CREATE TABLE a (id TEXT PRIMARY KEY, n) WITHOUT ROWID", "INSERT INTO a VALUES ('x', 1)"], 3),
    "a column that is hidden": (["CREATE TABLE a (rowid TEXT, n INTEGER)", "INSERT INTO a VALUES ('x', 1)"], 3),
    "a text among numbers": (["CREATE TABLE a (n INTEGER)", "INSERT INTO a VALUES (1), ('x')"], 3),
    "an integer that is cut": (["CREATE TABLE a (n INTEGER)", "INSERT INTO a VALUES (1), (1 << 40)"], 3),
    "an integer beside decimals": (["CREATE TABLE a (n NUMERIC)", "INSERT INTO a VALUES (0.5), ((1 << 53) + 1)"], 3),
    "a text that is cut": (["CREATE TABLE a (t TEXT)", "INSERT INTO a VALUES ('x' || char(0) || 'y')"], 3),
    "no day": (["CREATE TABLE a (d DATE)", "INSERT INTO a VALUES ('2020-02-31')"], 3),
    "no times of day": (["CREATE TABLE a (d TIME, n)", "INSERT INTO a VALUES ('noon', 1)"], 3),
    "fractions of milliseconds": (
        ["CREATE TABLE a (m DATETIME, n)", "INSERT INTO a VALUES ('2020-02-03 04:05:06.1234567', 1)"],
        6,
    ),
    "types of other programs": (
        ["CREATE TABLE a (n MONEY, o, p INT(11))", "INSERT INTO a VALUES (NULL, 1, 2), (2.5, 'x', 3.5)"],
        3,
    ),
    "computed columns": (["CREATE TABLE a (n INTEGER, m AS (n + 1))", "INSERT INTO a VALUES (1)"], 1),
    "a view": ([TABLE, "CREATE VIEW v AS SELECT * FROM b"], 3),
    "a virtual table": ([TABLE, "CREATE VIRTUAL TABLE words USING fts4(word)"], 3),
}
"""Statements that make a database, and how many runs its conversion takes."""


@pytest.mark.parametrize("name", DATABASES)
async def test_both_ways_give_the_same_from_databases(ways: Ways, tmp_path: Path, name: str) -> None:
    """The run that holds a database looks for what its driver does not read; if there is any, a program reads it."""
    statements, runs = DATABASES[name]
    with edited(tmp_path / "a.sqlite") as connection:
        for statement in statements:
            connection.execute(statement)
    assert await ways.compare(tmp_path / "a.sqlite", "Csv") == runs


async def test_nothing_in_a_result_is_older_than_its_conversion(ways: Ways, tmp_path: Path) -> None:
    """The tables that every database of SpatiaLite has are made before; their history says when the result was made."""
    source = write_geojson(tmp_path / "in.geojson", CONTENTS["points"])
    begun = datetime.now(UTC).isoformat(timespec="milliseconds")
    done = await ways.held.to("SpatiaLite", source)
    with closing(sqlite3.connect(done.path)) as connection:
        ((events, first),) = connection.execute("SELECT count(*), min(timestamp) FROM spatialite_history")
    assert events > 0
    assert datetime.fromisoformat(first) >= datetime.fromisoformat(begun)


async def test_options_are_set_for_one_question(ways: Ways, tmp_path: Path) -> None:
    """The functions of SpatiaLite, which can read files, are there to write a result, and not to read it back."""
    written = await ways.filed.to("SpatiaLite", write_geojson(tmp_path / "in.geojson", CONTENTS["points"]))
    async with ways.converters.open_run(["SQLite"]) as (held, directory):
        shutil.copy(written.path, directory / "a.sqlite")
        await held.configure({"SPATIALITE_LOAD": "YES"})
        for is_loaded in (True, False):
            assert (await held.open("a.sqlite", ["SQLite"], [])).ok
            assert (await held.ask(Answer, "query", "SELECT spatialite_version()")).ok is is_loaded


async def test_a_work_file_that_is_too_large_is_not_held(
    ways: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GeoParquet is compressed: the file that a program makes of it may be much larger than the upload."""
    if ways.converters.engine.capabilities.can_write("Parquet"):
        pytest.skip("GDAL reads GeoParquet itself")
    written = write_geojson(tmp_path / "in.geojson", [point(n, 2, t="x" * 4000) for n in range(90)])
    source = (await ways.filed.to("GeoParquet", written)).path
    monkeypatch.setattr(session_loading, "LARGEST_BYTES", 2 * source.stat().st_size)
    await ways.held.to("Csv", source)
    assert not any("--session" in command.argv for command in ways.runs.commands)


@pytest.mark.parametrize("output", ["Shapefile", "MapInfo"])
async def test_a_larger_file_is_held_if_its_records_are_padded(
    ways: Ways, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """Its texts have blanks behind them, which take nothing in memory."""
    written = write_geojson(
        tmp_path / "in.geojson", [point(n, 2, t="x", u="y" * (1 + 200 * (n == 0))) for n in range(90)]
    )
    source = (await ways.filed.to(output, written)).path
    with zipfile.ZipFile(source) as packed:
        unpacked = sum(member.file_size for member in packed.infolist())
    for is_held, most in ((True, unpacked // 2), (False, unpacked // 4)):
        monkeypatch.setattr(session_loading, "LARGEST_BYTES", most)
        ways.runs.commands.clear()
        await ways.held.to("Csv", source)
        assert any("--session" in command.argv for command in ways.runs.commands) is is_held
