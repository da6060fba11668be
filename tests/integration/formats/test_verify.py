"""Results are read back: damage after writing is reported or refused."""

import csv
import io
import json
import re
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest
from anyio import run_process

from sandbox.command import Command
from sandbox.verdict import Verdict
from service.blocking import INLINE_BYTES
from service.engine.arguments import dataset_name
from service.engine.recorded_system import COMPARED_FILE
from service.engine.workspace import FOLDER, WORK_FILE
from service.errors import Rejection
from service.formats.plan import ConversionPlan, plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from service.usecases.verify_output import verify_output
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Json, Pipeline, feature, geometry, write_geojson
from tests.integration.formats.readers import read_content
from tests.integration.formats.samples import point
from tests.integration.formats.test_layers import kml
from tests.support.converters import Converters

Damage: TypeAlias = Callable[[Path, ConversionPlan], None]
ROWS = [point(1, 2, name="a", n=1), point(3, 4, name="b", n=20), point(5, 6, name=None, n=300)]


async def written(pipeline: Pipeline, path: Path, output: str, damage: Damage) -> tuple[str, ...]:
    """What verification reports after `damage` was done to the output."""
    (told,) = await written_and_read(pipeline, path, output, damage)
    return told


async def written_and_read(pipeline: Pipeline, path: Path, output: str, *damages: Damage) -> list[tuple[str, ...]]:
    """What verification reports after each damage that was done to the output."""
    directory, source = pipeline.receive(path)
    target = choose_target(source.format, output)
    request = ConversionRequest(output=output)
    look = await inspect_source(pipeline.engine, pipeline.run, source, target, directory)
    plan = plan_conversion(look.source, target, look.facts, request, pipeline.engine.catalogue)
    async with pipeline.engine.session(pipeline.run, target) as run:
        await pipeline.engine.convert(run, look.source, plan, directory)
        told = []
        for damage in damages:
            damage(directory / FOLDER / dataset_name(plan, plan.datasets[0]), plan)
            told.append(await verify_output(pipeline.engine, run, look.source, plan, directory))
        return told


def nothing(_: Path, __: ConversionPlan) -> None:
    pass


TIMED = {
    "kml": (
        '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><TimeStamp><when>{time}</when></TimeStamp>'
        "<Point><coordinates>1,2</coordinates></Point></Placemark>{padding}</Document></kml>"
    ),
    "gpx": (
        '<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="2"><time>{time}</time></wpt>'
        "{padding}</gpx>"
    ),
}
COMMENT = "<!-- a comment -->\n"


@pytest.mark.parametrize("kind", ["kml", "gpx", "gpkg", "fgb"])
@pytest.mark.parametrize("is_large", [False, True])
async def test_times_in_zones_that_the_driver_changes_are_told(
    pipeline: Pipeline, tmp_path: Path, kind: str, *, is_large: bool
) -> None:
    """It has zones in quarters of an hour, and reads others as hours, or as none."""
    padding = COMMENT * (INLINE_BYTES // len(COMMENT)) if is_large else ""
    for time, count in (("2024-01-02T03:04:05+05:30", 0), ("2024-01-02T03:04:05+05:07", 1)):
        path = tmp_path / f"{count}.{kind}"
        if kind in TIMED:
            path.write_text(TIMED[kind].format(time=time, padding=padding))
        else:
            rows = [point(1, 2, at="2024-01-02T03:04:05+05:30", text=padding)]
            made = await pipeline.to(kind, write_geojson(tmp_path / "a.geojson", rows))
            path.write_bytes(made.path.read_bytes().replace(b"+05:30", time[-6:].encode()))
        warnings = await written(pipeline, path, "Csv", nothing)
        assert [f"holds {count} time in a time zone that is not" in warning for warning in warnings] == [
            True
        ] * count, warnings


OPENED = {
    "Mo-Fr 08:00-18:20; Sa 08:00-12:40": 0,
    "2024-12-24 08:00-18:80": 0,
    "2024-01-02 08:00": 0,
    "2024-01-02 08:00:00-05:20": 1,
    "2024/01/02 08:00:00.125+0507": 1,
}
"""Texts, and how many times in odd zones they hold."""


@pytest.mark.parametrize("kind", ["gpkg", "fgb"])
async def test_hours_of_a_day_are_no_times_in_zones(pipeline: Pipeline, tmp_path: Path, kind: str) -> None:
    """A shop opens from an hour to another, which no zone is; a time has a day."""
    rows = [point(1, 2, at="2024-01-02T03:04:05Z", open=text) for text in OPENED]
    made = await pipeline.to(kind, write_geojson(tmp_path / "a.geojson", rows))
    warnings = await written(pipeline, made.path, "GeoJson", nothing)
    assert [f"holds {sum(OPENED.values())} times in time zones that are" in warning for warning in warnings] == [True]


def _without_last_row(path: Path, _: ConversionPlan) -> None:
    with zipfile.ZipFile(path) as book:
        content = book.read("content.xml")
    start, end = content.rindex(b"<table:table-row>"), content.rindex(b"</table:table>")
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("content.xml", content[:start] + content[end:])


async def test_a_large_ods_is_told_to_be_complete(either: Pipeline, tmp_path: Path) -> None:
    """Its driver stops after 10 MB of cells, which would be taken for a loss; a row that is missing is one."""
    path = tmp_path / "ä.csv"
    path.write_text("id,name\n" + "".join(f"{number},{'x' * 32_000}\n" for number in range(330)), encoding="utf-8")
    (told,), (lacking,) = await written_and_read(either, path, "Ods", nothing, _without_last_row)
    assert re.match(
        r"'ä' holds all its 330 features, but programs such as QGIS read only (some|[1-9]\d*) of them", told
    )
    assert re.match(r"When read back, 'ä' holds \d+ features; 330 were expected\.|.* could not be read back", lacking)


def _sql(statement: str) -> Callable[[Path, ConversionPlan], None]:
    def damage(path: Path, plan: ConversionPlan) -> None:
        with edited(path) as connection:
            for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                connection.execute(f'DROP TRIGGER "{trigger}"')
            connection.execute(statement.format(plan.datasets[0].name))

    return damage


def _csv(change: Callable[[list[list[str]]], list[list[str]]]) -> Callable[[Path, ConversionPlan], None]:
    def damage(path: Path, _: ConversionPlan) -> None:
        text = io.StringIO()
        csv.writer(text).writerows(change(list(csv.reader(path.read_text().splitlines()))))
        path.write_text(text.getvalue())

    return damage


def _dbf(path: Path, _: ConversionPlan) -> None:
    table = path.with_suffix(".dbf")
    table.write_bytes(table.read_bytes().replace(b" 20", b" 99"))


def _json(path: Path, _: ConversionPlan) -> None:
    document = json.loads(path.read_text())
    document["features"][0]["geometry"] = None
    path.write_text(json.dumps(document))


def _line(path: Path, _: ConversionPlan) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))


def _cut(path: Path, _: ConversionPlan) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def _unreadable(path: Path, _: ConversionPlan) -> None:
    path.write_bytes(b"\xff" * 64)


LINE = geometry("LineString", [[0, 0], [1, 1]])
PECULIAR: Mapping[str, tuple[str, list[Json]]] = {
    "a lone column": ("Csv", [feature(None, a=1), feature(None, a=None), feature(None, a=3)]),
    "a lone column of nulls": ("Csv", [feature(None, a=None), feature(None, a=None)]),
    "a lone column of nulls beside geometry": ("Csv", [point(1, 2, a=None), feature(None, a=None)]),
    "columns of a table called as coordinates": ("Csv", [feature(None, X=1, Y=2, Z=3), feature(None, X=4)]),
    "columns beside lines called as coordinates": ("Csv", [feature(LINE, X=1, y=2, _wkt="a", wkt="b")]),
    "line breaks, quotes and separators": ("Csv", [point(1, 2, a="x\r\ny", b='"'), point(3, 4, a=",\t;", b="p\nq")]),
    "a mark of byte order": ("Csv", [point(1, 2, **{"\ufeffa": "\ufeff", "b": 1})]),
    "dates that are missing": ("Shapefile", [point(1, 2, a="2020-01-01"), point(3, 4, a=None)]),
    "texts that begin with a star": ("Shapefile", [point(1, 2, a="*", b="0", c="?"), point(3, 4, a="*a", b="00")]),
    "no geometry and no column": ("Shapefile", [feature(None), feature(None)]),
    "families and missing geometries": ("Shapefile", [point(1, 2, a=1), feature(LINE, a=2), feature(None, a=3)]),
    "names of the target's own columns": ("GeoPackage", [point(1, 2, fid="a", geom="b", ogc_fid=3)]),
    "no feature": ("GeoJson", []),
    "columns of nulls": ("GeoJson", [point(1, 2, a=None, id=None), feature(None, a=None, id=7)]),
    "texts of JSON": ("GeoJson", [point(1, 2, a="[1, 2]", b='{"c": null}', d=True, e=2**53)]),
}


SOUND = ["GeoPackage", "SpatiaLite", "Shapefile", "Csv", "GeoJsonSeq", "Kml", "GeoParquet", "Wkt"]
DAMAGED: Mapping[str, tuple[str, Callable[[Path, ConversionPlan], None], str]] = {
    "a row is gone": ("GeoPackage", _sql('DELETE FROM "{}" WHERE n = 1'), "holds 2 features; 3 were"),
    "a geometry is gone": (
        "GeoPackage",
        _sql('UPDATE "{}" SET geom = NULL WHERE n = 1'),
        "2 features of 'a' have geometry",
    ),
    "a value is gone": ("SpatiaLite", _sql('UPDATE "{}" SET name = NULL'), "'name' has 0 filled values; 2 were"),
    "a number is another": ("GeoPackage", _sql('UPDATE "{}" SET n = 21 WHERE n = 20'), "numbers in 'n' add up"),
    "a number is another in a table": ("Shapefile", _dbf, "numbers in 'n' add up"),
    "a line is gone": ("Csv", _csv(lambda rows: rows[:-1]), "holds 2 features; 3 were"),
    "a line of WKT is gone": ("Wkt", _line, "holds 2 features; 3 were"),
    "a line of WKT is cut off": ("Wkt", _cut, "could not be read back"),
    "a column is gone": ("Csv", _csv(lambda rows: [row[:-1] for row in rows]), "lacks columns: 'n'"),
}


@pytest.mark.parametrize("target", SOUND)
async def test_nothing_is_told_of_a_sound_result(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """With and without the work file."""
    path = write_geojson(tmp_path / "a.geojson", ROWS)
    assert await written(pipeline, path, target, nothing) == ()
    if target != "GeoPackage":
        database = (await pipeline.to("GeoPackage", path)).path
        assert await written(pipeline, database, target, nothing) == ()


async def test_layers_whose_names_a_geodatabase_cannot_have_are_read_back(either: Pipeline, tmp_path: Path) -> None:
    """They were sought by the names that its driver changes, and said not to be proven complete."""
    path = tmp_path / "a.kml"
    path.write_text(kml("a-b", "2nd", "select"))
    assert await written(either, path, "OpenFileGdb", nothing) == ()
    renamed = "Layers were renamed: 'a-b' to 'a_b', '2nd' to '_2nd', 'select' to 'select_'."
    assert renamed in (await either.to("OpenFileGdb", path)).output.warnings


@pytest.mark.parametrize("case", PECULIAR)
async def test_nothing_is_told_of_what_a_driver_writes_its_own_way(
    pipeline: Pipeline, tmp_path: Path, case: str
) -> None:
    """Differences in the bytes that are not damage; columns without rows do not exist in GeoJSON."""
    target, features = PECULIAR[case]
    path = write_geojson(tmp_path / "a.geojson", features)
    if not features:
        path = tmp_path / "a.csv"
        path.write_text("a,b\n")
    elif target != "GeoPackage":
        path = (await pipeline.to("GeoPackage", path)).path
    assert await written(pipeline, path, target, nothing) == ()


@pytest.mark.parametrize("case", DAMAGED)
async def test_what_is_lost_after_all_is_told(pipeline: Pipeline, tmp_path: Path, case: str) -> None:
    """With its kind, its count and its column."""
    target, damage, words = DAMAGED[case]
    path = write_geojson(tmp_path / "a.geojson", ROWS)
    if target != "GeoPackage":
        path = (await pipeline.to("GeoPackage", path)).path
    else:
        path = (await pipeline.to("SpatiaLite", path)).path
    (told,) = await written(pipeline, path, target, damage)
    assert words in told


async def test_geojson_is_read_back_by_its_scan(pipeline: Pipeline, tmp_path: Path) -> None:
    """A warning reports a missing geometry."""
    path = (await pipeline.to("GeoPackage", write_geojson(tmp_path / "a.geojson", ROWS))).path
    assert await written(pipeline, path, "GeoJson", nothing) == ()
    (told,) = await written(pipeline, path, "GeoJson", _json)
    assert "2 features of 'a' have geometry; 3 were" in told


BEFORE = {
    "holds 2 features; 3 were": "DELETE FROM {} WHERE n = 1",
    "2 features of 'a' have geometry": "UPDATE {} SET __geomill_geometry = NULL WHERE n = 1",
    "'name' has 1 filled value; 2 were": "UPDATE {} SET name = NULL WHERE n = 1",
    "numbers in 'n' add up": "UPDATE {} SET n = 21 WHERE n = 20",
}


@pytest.mark.parametrize("told", BEFORE)
async def test_geoparquet_is_read_back_by_the_program_that_writes_it(
    pipeline: Pipeline, tmp_path: Path, told: str
) -> None:
    """A warning reports what was lost from the work file before the result was written."""
    path = (await pipeline.to("GeoPackage", write_geojson(tmp_path / "a.geojson", ROWS))).path
    directory, source = pipeline.receive(path)
    facts = await pipeline.engine.inspect(pipeline.run, source, directory)
    target = choose_target(source.format, "GeoParquet")
    plan = plan_conversion(source, target, facts, ConversionRequest(), pipeline.engine.catalogue)
    with edited(directory / FOLDER / WORK_FILE) as connection:
        connection.execute(BEFORE[told].format(facts.layers[0].table))
    await pipeline.engine.convert(pipeline.run, source, plan, directory)
    (warning,) = await verify_output(pipeline.engine, pipeline.run, source, plan, directory)
    assert told in warning


async def test_a_document_that_was_not_written_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """A converter may succeed without it, as any other; that is no defect of the service."""
    path = (await pipeline.to("GeoPackage", write_geojson(tmp_path / "a.geojson", ROWS))).path
    with pytest.raises(Rejection, match="gave no result"):
        await written(pipeline, path, "GeoJson", lambda result, _: result.unlink())


async def test_a_result_that_nobody_would_want_is_refused(pipeline: Pipeline, tmp_path: Path) -> None:
    """All features, or all geometries, are missing."""
    path = (await pipeline.to("SpatiaLite", write_geojson(tmp_path / "a.geojson", ROWS))).path
    with pytest.raises(Rejection, match="none of the 3 features"):
        await written(pipeline, path, "GeoPackage", _sql('DELETE FROM "{}"'))
    with pytest.raises(Rejection, match="none of the 3 features of 'a' has its geometry"):
        await written(pipeline, path, "GeoPackage", _sql('UPDATE "{}" SET geom = NULL'))
    with pytest.raises(Rejection, match="none of the 3 features"):
        await written(pipeline, path, "GeoPackage", _sql('DROP TABLE "{}"'))


@pytest.mark.parametrize("target", ["SpatiaLite", "Csv", "GeoJson", "Wkt"])
async def test_a_result_thatnothing_here_can_read_is_told(pipeline: Pipeline, tmp_path: Path, target: str) -> None:
    """The reader may be what fails, so the result is not refused."""
    path = (await pipeline.to("GeoPackage", write_geojson(tmp_path / "a.geojson", ROWS))).path
    (told,) = await written(pipeline, path, target, _unreadable)
    assert "'a' could not be read back, so it is not proven that it is complete, with 3 features." in told


@pytest.mark.parametrize("has_sessions", [True, False])
@pytest.mark.parametrize(
    ("epsg", "told"),
    [
        (2053, "cannot record EPSG:2053: "),
        (31467, "cannot record EPSG:31467 exactly: "),
        (22391, "read its datum as 'Carthage' there and do not know that"),
        (4222, "read its datum as 'Cape' there and do not know that"),
        (4267, ""),
        (25832, ""),
        (3857, ""),
    ],
)
async def test_a_system_that_a_result_does_not_record_is_told(
    converters: Converters, tmp_path: Path, epsg: int, told: str, *, has_sessions: bool
) -> None:
    """The driver records none, or one with another datum, and succeeds. The run that has written it finds this out.

    Or it records the datum with an ellipsoid by which PROJ does not know it.
    """
    path, commands = write_geojson(tmp_path / "a.geojson", [point(9, 51, name="a")]), []

    async def run(command: Command) -> Verdict:
        commands.append(command)
        return await converters.run(command)

    warnings = await _with_system(Pipeline(converters, run, has_sessions=has_sessions), path, epsg)
    assert len(warnings) == bool(told), warnings
    assert all(told in warning for warning in warnings)
    if has_sessions:
        assert len(commands) == 1


@pytest.mark.parametrize("has_sessions", [True, False])
async def test_the_systems_of_all_layers_are_compared(
    converters: Converters, tmp_path: Path, *, has_sessions: bool
) -> None:
    """The first record the right one, the last none. If the run that wrote is over, three runs read all of them."""
    commands: list[Command] = []

    async def run(command: Command) -> Verdict:
        commands.append(command)
        return await converters.run(command)

    pipeline = Pipeline(converters, run, has_sessions=has_sessions)
    path = write_geojson(tmp_path / "a.geojson", [point(9, 51, name="a")])
    several, names = tmp_path / "several.gpkg", ["first", "second & <third>", "last"]
    for name in names:
        await run_process(["ogr2ogr", "-f", "GPKG", "-append", several, path, "-nln", name])

    def damage(folder: Path, plan: ConversionPlan) -> None:
        assert len(plan.datasets) == len(names)
        assert plan.datasets[-1].name == "last"
        without = ["-f", "MapInfo File", "-a_srs", 'LOCAL_CS["none"]', str(folder / "out/last.tab"), str(path)]
        subprocess.run(["ogr2ogr", *without], check=True, capture_output=True)

    assert not await _with_system(pipeline, several, 25832)
    compared = [command for command in commands if COMPARED_FILE in command.argv]
    assert len(compared) == (0 if has_sessions else 3)
    (told,) = await _with_system(pipeline, several, 25832, damage=damage)
    assert "cannot record EPSG:25832: " in told


@pytest.mark.parametrize("features", [[point(9, 51, name="a")], []])
@pytest.mark.parametrize(("epsg", "told"), [(2053, "cannot record EPSG:2053: "), (25832, "")])
async def test_a_system_is_compared_where_geometry_begins_late(
    pipeline: Pipeline, tmp_path: Path, epsg: int, told: str, features: list[Json]
) -> None:
    """Features without geometry, however many, are nowhere in any system."""
    nowhere = [feature(None, name="b")] * 1000
    path = write_geojson(tmp_path / "a.geojson", [*nowhere, *features])
    warnings = await _with_system(pipeline, path, epsg)
    expected = [told] if told and features else []
    assert len(warnings) == len(expected), warnings
    assert all(told in warning for warning in warnings)


async def test_a_limit_saysnothing_about_the_system_that_a_result_records(
    converters: Converters, tmp_path: Path
) -> None:
    """The comparison that could not be finished found nothing out."""
    path = write_geojson(tmp_path / "a.geojson", [point(9, 51, name="a")])

    async def run(command: Command) -> Verdict:
        short = msgspec.structs.replace(command.limits, wall_seconds=0.001) if "moved.vrt" in command.argv else None
        return await converters.run(msgspec.structs.replace(command, limits=short) if short else command)

    with pytest.raises(Rejection, match="took longer than allowed"):
        await _with_system(Pipeline(converters, run), path, 25832)


@pytest.mark.parametrize("output", ["Gml", "GeoPackage", "FlatGeobuf"])
async def test_a_compound_system_that_a_result_does_not_record_is_told(
    either: Pipeline, tmp_path: Path, output: str
) -> None:
    """The driver of GML names another system for geometries than for their bounds, of which readers make none."""
    path = write_geojson(tmp_path / "a.geojson", [feature(geometry("Point", [5.4, 52.1, 10]))])
    warnings = await _with_system(either, path, 7415, output=output)
    assert [told.partition(":")[0] for told in warnings] == ["GML cannot record EPSG"] * (output == "Gml")


async def _with_system(
    pipeline: Pipeline,
    path: Path,
    epsg: int,
    damage: Callable[[Path, ConversionPlan], None] = nothing,
    *,
    output: str = "MapInfo",
) -> tuple[str, ...]:
    """The warnings about the results for the file at `path` in the system `epsg`, after `damage` to them."""
    directory, source = pipeline.receive(path)
    target = choose_target(source.format, output)
    request = ConversionRequest(output=output, target_epsg=epsg)
    async with pipeline.engine.session(pipeline.run, target) as session:
        facts = await pipeline.engine.inspect(session, source, directory, request)
        plan = plan_conversion(source, target, facts, request, pipeline.engine.catalogue)
        await pipeline.engine.convert(session, source, plan, directory)
        damage(directory / FOLDER, plan)
        return await verify_output(pipeline.engine, session, source, plan, directory)


IN_FOLDER = "<Folder><name>{}</name><Placemark><name>{}</name>{}</Placemark></Folder>"
PLACE = "<Point><coordinates>1,2,3</coordinates></Point>"
WAY = "<LineString><coordinates>1,2,3 4,5,6</coordinates></LineString>"


@pytest.mark.parametrize("names", [("Waypoints", "Tracks", "T"), ("tracks", "waypoints", "routes"), ("a", "b", "c")])
async def test_several_layers_are_read_back_from_gpx_whatever_their_names(
    either: Pipeline, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """GPX has layers of its own, of which some may have the name of another one that was converted."""
    folders = map(IN_FOLDER.format, names, "xyz", (PLACE, WAY, PLACE))
    document = f"<Document>{''.join(folders)}</Document>"
    (tmp_path / "a.kml").write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2">{document}</kml>')
    assert await written(either, tmp_path / "a.kml", "Gpx", nothing) == ()
    done = await either.to("Gpx", tmp_path / "a.kml")
    content = read_content("gpx", done.path)
    assert sorted(content.names or ()) == ["x", "y", "z"]


@pytest.mark.parametrize("target", ["Gml", "MapInfo"])
async def test_columns_that_a_driver_renames_are_not_said_to_be_lost(
    either: Pipeline, tmp_path: Path, target: str
) -> None:
    """Hyphens, as in names of simplestyle, and years are renamed by us, as the driver would do it, and told."""
    columns = {"marker-color": "#f00", "2020": 1, "3020": 2}
    path = write_geojson(tmp_path / "my-a.geojson", [point(1, 2, **columns)])
    assert await written(either, path, target, nothing) == ()
    done = await either.to(target, path)
    names = ("marker_color", "_2020", "_3020")
    assert {column.written for dataset in done.plan.datasets for column in dataset.columns} == set(names)


@pytest.mark.parametrize("target", ["Shapefile", "Gml"])
async def test_texts_of_blanks_alone_are_named_as_the_cause(either: Pipeline, tmp_path: Path, target: str) -> None:
    """Some programs fill cells with a blank, which drivers read as nothing: no data are lost."""
    rows = [point(1, 2, name=" ", n="a"), point(3, 4, name="oak ", n="b")]
    path = write_geojson(tmp_path / "a.geojson", rows)
    told = "When read back, 'name' has 1 filled value; 2 were expected. The others are probably texts of blanks alone,"
    assert await written(either, path, target, nothing) == (f"{told} which became missing.",)


async def test_columns_without_values_that_a_layer_lacks_are_called_so(converters: Converters, tmp_path: Path) -> None:
    """Of the second layer of KML and later ones, the driver knows only columns with values, outside of a session."""
    with edited(tmp_path / "a.sqlite") as connection:
        for table, value in (("a", "oak"), ("b", None)):
            connection.execute(f"CREATE TABLE {table} (name TEXT, kind TEXT)")
            connection.execute(f"INSERT INTO {table} VALUES ('x', ?)", (value,))  # noqa: S608 -- ours
    told = await written(Pipeline(converters, has_sessions=False), tmp_path / "a.sqlite", "Kml", nothing)
    assert told == ("When read back, 'b' lacks columns without any value: 'kind'.",)


async def test_nan_that_a_result_cannot_hold_is_told_once(pipeline: Pipeline, tmp_path: Path) -> None:
    """When the document is scanned; reading back told it again, as a missing value."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, n=float("nan")), point(1, 2, n=1.5)])
    assert await written(pipeline, path, "GeoPackage", nothing) == ()


@pytest.mark.parametrize("name", [" b", "b ", "\tb", 'a"b'])
async def test_names_that_the_driver_of_csv_trims_are_not_told_as_missing(
    either: Pipeline, tmp_path: Path, name: str
) -> None:
    """Other programs read them as they are."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{name: "north", "n": 1})])
    assert await written(either, path, "Csv", nothing) == ()


@pytest.mark.parametrize("name", ["X", "y"])
async def test_texts_of_a_column_x_in_csv_are_not_told_as_missing(either: Pipeline, tmp_path: Path, name: str) -> None:
    """In tables without geometry, too."""
    path = write_geojson(tmp_path / "a.geojson", [feature(None, **{name: "north", "n": 1}), feature(None, n=2)])
    assert await written(either, path, "Csv", nothing) == ()


@pytest.mark.parametrize("name", ["z", "Z"])
async def test_texts_of_a_column_z_in_csv_are_not_told_as_missing(either: Pipeline, tmp_path: Path, name: str) -> None:
    """The driver takes them for elevations, and reads none, although the geometry is in another column."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{name: "north", "n": 1}), point(3, 4, n=2)])
    assert await written(either, path, "Csv", nothing) == ()


async def test_columns_of_gml_named_like_geometries_are_renamed(pipeline: Pipeline, tmp_path: Path) -> None:
    """Their elements would be read as the geometry, and the result was refused; others stay, as in small letters."""
    columns = {"Surface": "asphalt", "Point": 5, "GeometryCollection": "g", "boundedBy": "b", "polygon": "p"}
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **columns)])
    assert await written(pipeline, path, "Gml", nothing) == ()
    (told,) = (await pipeline.to("Gml", path)).output.warnings
    assert told == (
        "Columns were renamed: 'Surface' to 'Surface_', 'Point' to 'Point_', 'GeometryCollection' to "
        "'GeometryCollection_', 'boundedBy' to 'boundedBy_'."
    )


async def test_a_column_gml_id_may_have_texts_longer_than_it_declares(either: Pipeline, tmp_path: Path) -> None:
    """The driver of GML writes no feature with a text beyond the width of its column."""
    made = await either.to(
        "GeoPackage", write_geojson(tmp_path / "a.geojson", [point(1, 2, gml_id="longer than five")])
    )
    path = tmp_path / "a.gpkg"
    path.write_bytes(made.path.read_bytes())
    with edited(path) as connection:
        connection.execute("PRAGMA writable_schema = 1")
        narrow = "replace(sql, '\"gml_id\" TEXT', '\"gml_id\" TEXT(5)')"
        connection.execute(f"UPDATE sqlite_master SET sql = {narrow} WHERE name = 'a'")  # noqa: S608 -- ours
    (row,) = readers.table((await either.to("Csv", (await either.to("Gml", path)).path)).path)
    assert row["gml_id_"] == "longer than five"


async def test_columns_of_kml_named_like_times_are_renamed(either: Pipeline, tmp_path: Path) -> None:
    """Some versions of its driver find nothing but dates and times in them."""
    columns = {"begin": "Main St", "End": 7, "timestamp": "2024-01-02T03:04:05"}
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **columns)])
    assert await written(either, path, "Kml", nothing) == ()
    (told, _) = (await either.to("Kml", path)).output.warnings
    assert told == "Columns were renamed: 'begin' to 'begin_', 'End' to 'End_'."


async def test_a_column_gml_id_does_not_become_the_identifiers_of_gml(pipeline: Pipeline, tmp_path: Path) -> None:
    """Its values may be repeated, missing, or no names of XML, with which the result was refused, or a value added."""
    rows = [point(1, 2, gml_id={"a": None}), point(3, 4, gml_id=None), point(5, 6, gml_id="a b")]
    path = write_geojson(tmp_path / "a.geojson", rows)
    assert await written(pipeline, path, "Gml", nothing) == ()
    assert "Columns were renamed: 'gml_id' to 'gml_id_'." in (await pipeline.to("Gml", path)).output.warnings


async def test_columns_and_layers_may_have_any_names(pipeline: Pipeline, tmp_path: Path) -> None:
    """Those through which they are renamed are none of them, as `__2` was, which stands for `$` here."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{"it": 0, "%": 1, "$": 2, "a,b": 3})])
    assert await written(pipeline, path, "Gml", nothing) == ()
    plain = tmp_path / "plain.geojson"
    write_geojson(plain, [point(1, 2, n=1)])
    layers = tmp_path / "layers.sqlite"
    for name in ("t1", "__t0", "__t1", "t0"):
        await run_process(["ogr2ogr", "-f", "SQLite", "-append", layers, plain, "-nln", name])
    done = await pipeline.to("GeoPackage", layers)
    assert [dataset.layer.name for dataset in done.plan.datasets] == ["t1", "__t0", "__t1", "t0"]
    assert [dataset.layer.crs.epsg for dataset in done.plan.datasets] == [4326] * 4


@pytest.mark.parametrize("name", ["ogc_fid", "OGC_FID", "_rowid_", "rowid"])
async def test_columns_of_spatialite_named_like_numbers_of_rows_are_renamed(
    pipeline: Pipeline, tmp_path: Path, name: str
) -> None:
    """Its driver does not show the first, nor was the result compared; beside `rowid`, it made no index."""
    path = write_geojson(tmp_path / "a.geojson", [point(1, 2, **{name: "x", "n": 1})])
    assert await written(pipeline, path, "SpatiaLite", nothing) == ()
    done = await pipeline.to("SpatiaLite", path)
    shown = await run_process(["ogrinfo", "-al", done.path])
    assert f"{name}_ (String) = x" in shown.stdout.decode()
    assert f"Columns were renamed: '{name}' to '{name}_'." in done.output.warnings
    assert b"idx_a_geometry" in done.path.read_bytes()
