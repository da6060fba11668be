"""What reading GeoJSON must not lose for any target, in either way of conversion."""

import asyncio
import csv
import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from sandbox.command import Command
from sandbox.verdict import Verdict
from service.engine.convert import UNASKED
from service.engine.output import Output
from service.errors import Rejection
from service.formats.detect import detect
from service.formats.facts import Flaw
from service.formats.plan import plan_conversion
from service.formats.registry import find_output
from service.formats.request import ConversionRequest
from service.geojson import scan as scan_program
from service.geojson.refusals import MAX_FIELDS
from service.geojson.scan import scan
from service.geojson.warnings import reading_warnings
from service.usecases.inspect_source import inspect_source, scan_document
from service.usecases.verify_output import verify_output
from tests.support.converters import Converters
from tests.support.geojson import POINT, collection, feature, flaw, geometry

Values = list[str | None]
LARGE = 300_000


async def convert(
    converters: Converters,
    document: bytes,
    output: str,
    name: str = "upload.geojson",
    request: ConversionRequest = UNASKED,
    *,
    has_sessions: bool = False,
) -> Output:
    """Convert as a job does."""
    engine, folder = converters.engines[has_sessions], converters.new_directory()
    upload = folder / name
    upload.write_bytes(document)
    source, target = detect(upload, name, folder / "unpacked"), find_output(output)
    async with engine.session(converters.run, target) as run:
        look = await inspect_source(engine, run, source, target, folder, request=request)
        plan = plan_conversion(look.source, target, look.facts, request, engine.catalogue)
        await engine.convert(run, look.source, plan, folder)
    return await engine.collect(plan, folder)


def _of_csv(path: Path) -> Values:
    csv.field_size_limit(2 * LARGE)
    with path.open(encoding="utf-8", newline="") as file:
        return [row["a"] for row in csv.DictReader(file)]


def _of_database(path: Path) -> Values:
    with closing(sqlite3.connect(path)) as database:
        return [value for (value,) in database.execute("SELECT a FROM upload ORDER BY fid")]


def _of_lines(path: Path) -> Values:
    return [json.loads(line)["properties"]["a"] for line in path.read_text(encoding="utf-8").splitlines()]


READERS: Mapping[str, Callable[[Path], Values]] = {"Csv": _of_csv, "GeoPackage": _of_database, "GeoJsonSeq": _of_lines}
TEXTS = ["\ud83dé", "a\ude00b", "\udbff😀", "\ud83d", "😀", "é"]
TEXTS_READ = ["\ufffdé", "a\ufffdb", "\ufffd😀", "\ufffd", "😀", "é"]
HALVES_TOLD = "4 escapes of an unpaired surrogate"


@pytest.mark.parametrize("output", READERS)
@pytest.mark.parametrize("padding", [0, LARGE])
async def test_half_a_letter_takes_no_whole_one_along(converters: Converters, output: str, padding: int) -> None:
    """The converter would drop text after some of them; each becomes U+FFFD, and a warning counts them."""
    rows = [feature({"a": text}) for text in [*TEXTS, "x" * padding]]
    done = await convert(converters, collection(*rows), output)
    assert READERS[output](done.path)[: len(TEXTS)] == TEXTS_READ
    assert any(HALVES_TOLD in warning for warning in done.warnings)


async def test_half_letters_of_a_sequence_are_told(converters: Converters) -> None:
    """In a sequence, no text is dropped."""
    lines = b"".join(json.dumps(feature({"a": text})).encode() + b"\n" for text in TEXTS)
    done = await convert(converters, lines, "Csv", "upload.geojsonl")
    assert _of_csv(done.path) == TEXTS_READ
    assert any(HALVES_TOLD in warning for warning in done.warnings)


CODES = ["2024-01-01T10:00:00 or later", "1-2-3", "10:20 and more", "T1234", "23:593"]


@pytest.mark.parametrize("output", READERS)
@pytest.mark.parametrize("code", CODES)
async def test_a_text_that_begins_like_a_date_is_kept_whole(converters: Converters, output: str, code: str) -> None:
    """In a column of such texts, which the converter would take for dates or times."""
    done = await convert(converters, collection(feature({"a": code}), feature({"a": code})), output)
    assert READERS[output](done.path) == [code, code]
    told = any("stay text" in warning for warning in done.warnings)
    assert told is (output != "GeoJsonSeq")


async def test_dates_stay_dates_where_nothing_is_lost(converters: Converters) -> None:
    """A database has types for them, with millisecond precision; a warning reports the rounding."""
    moment = "2024-01-01T10:00:00.123456Z"
    done = await convert(converters, collection(feature({"a": "2024-01-01", "t": moment})), "GeoPackage")
    with closing(sqlite3.connect(done.path)) as database:
        types = {row[1]: row[2] for row in database.execute("PRAGMA table_info(upload)")}
        assert (types["a"], types["t"]) == ("DATE", "DATETIME")
    assert any("millisecond" in warning for warning in done.warnings)


async def test_between_json_formats_times_are_texts(converters: Converters) -> None:
    """They are kept character by character, so there is no warning."""
    moment = "2024-01-01T10:00:00.123456Z"
    done = await convert(converters, collection(feature({"a": moment})), "GeoJsonSeq")
    assert _of_lines(done.path) == [moment]
    assert done.warnings == ()


async def test_objects_are_not_told_as_texts_that_are_like_them(converters: Converters) -> None:
    """The converter, which examines what lies at the dateline, takes them for such texts."""
    halves = [[[[edge, 1], [edge, 2], [inside, 1], [edge, 1]]] for edge, inside in ((180, 170), (-180, -170))]
    document = collection(feature({"a": {"b": 1}}, geometry("MultiPolygon", halves)))
    done = await convert(converters, document, "GeoJsonSeq")
    assert json.loads(done.path.read_text())["properties"] == {"a": {"b": 1}}
    assert done.warnings == ()


@pytest.mark.parametrize(
    "values", [([1, 2], ["x"]), ([True, False], [1]), (["x"], "y"), ([[1], {"b": 0.5}], "y")], ids=str
)
async def test_between_json_formats_mixed_lists_stay(converters: Converters, values: tuple[object, ...]) -> None:
    """The converter would make lists of one type of them: `["1", "2"]`, `[1, 0]`, `["y"]`."""
    rows = [feature({"a": value}) for value in values]
    done = await convert(converters, collection(*rows), "GeoJsonSeq")
    assert tuple(map(json.dumps, _of_lines(done.path))) == tuple(map(json.dumps, values))
    assert done.warnings == ()
    lines = "\n".join(map(json.dumps, rows)).encode()
    done = await convert(converters, lines, "GeoJson", "upload.geojsonl")
    assert [row["properties"]["a"] for row in json.loads(done.path.read_text())["features"]] == list(values)


async def test_foreign_members_are_kept_or_told(converters: Converters) -> None:
    """Only other JSON formats have a place for them."""
    document = collection({**feature({"a": "x"}), "style": {"color": "red"}})
    kept = await convert(converters, document, "GeoJsonSeq")
    assert json.loads(kept.path.read_text())["style"] == {"color": "red"}
    assert kept.warnings == ()
    told = await convert(converters, document, "Kml")
    assert any("not kept: style." in warning for warning in told.warnings)


async def test_foreign_members_of_geometries_are_kept_or_told(converters: Converters) -> None:
    """Only other JSON formats have a place for them, too; bounds of geometries are none."""
    place = {"type": "Point", "bbox": [1, 2, 1, 2], "coordinates": [1, 2], "accuracy": 7}
    document = collection({**feature({"a": "x"}), "geometry": place})
    kept = await convert(converters, document, "GeoJsonSeq")
    assert json.loads(kept.path.read_text())["geometry"]["accuracy"] == 7
    assert kept.warnings == ()
    told = await convert(converters, document, "Kml")
    assert [warning for warning in told.warnings if "not kept: geometry.accuracy." in warning]


def test_the_first_position_with_other_numbers_is_found_in_documents_that_are_read_in_parts(tmp_path: Path) -> None:
    """Each kind on its own, in a later part than the one before."""
    small = {**feature({"a": "x" * 1000}), "geometry": {"type": "Point", "coordinates": [1, 2]}}
    longer = {**small, "geometry": {"type": "Point", "coordinates": [1, 2, 3, 4]}}
    mixed = {**small, "geometry": {"type": "LineString", "coordinates": [[1, 2], [3, 4, 5]]}}
    path = tmp_path / "a.geojson"
    path.write_bytes(collection(*[small] * 2000, longer, *[small] * 2000, mixed, longer, mixed))
    found = scan(path)
    assert (flaw(found, Flaw.LONGER).first, flaw(found, Flaw.HALF_RAISED).first) == (2001, 4002)
    first, second = reading_warnings(found)
    assert first.endswith(" The first is feature 4,002.")
    assert second.endswith(" The first is feature 2,001.")


@pytest.mark.parametrize(
    ("coordinates", "read", "told"),
    [
        ([[1, 2, 3], [4, 5]], [[1, 2, 3], [4, 5, 0]], "1 feature with elevations in some positions"),
        ([[1, 2, 3, 4], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]], "1 feature with more than three numbers in positions"),
        ([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]], ""),
    ],
)
@pytest.mark.parametrize("name", ["upload.geojson", "upload.geojsonl"])
async def test_numbers_of_positions_that_are_added_or_left_out_are_told(
    converters: Converters, name: str, coordinates: list[list[int]], read: list[list[int]], told: str
) -> None:
    """Elevations are added as 0, and a fourth number has no place in a geometry that is read."""
    row = {**feature({"a": "x"}), "geometry": {"type": "LineString", "coordinates": coordinates}}
    document = collection(row) if name.endswith(".geojson") else json.dumps(row).encode() + b"\n"
    done = await convert(converters, document, "Wkt", name)
    line = ",".join(" ".join(map(str, position)) for position in read)
    assert done.path.read_text().strip() == f"LINESTRING Z ({line})"
    assert [warning[: len(told)] for warning in done.warnings if "feature" in warning] == [told][: bool(told)]


@pytest.mark.parametrize("target", ["GeoPackage", "GeoJsonSeq", "Shapefile"])
async def test_geometries_that_cannot_be_read_are_told(converters: Converters, target: str) -> None:
    """Whole ones and parts, whatever the target; the driver leaves them out."""
    lost = {**feature({"a": "x"}), "geometry": {"type": "Point", "coordinates": ["1", "2"]}}
    parts = [[[[0, 0], [0, 1], [1, 1], [0, 0]]], [[["x", 0], [0, 1], [1, 1], [0, 0]]]]
    damaged = {**feature({"a": "y"}), "geometry": {"type": "MultiPolygon", "coordinates": parts}}
    done = await convert(converters, collection(lost, damaged), target)
    for words in ("1 feature with a geometry that cannot be read", "1 feature with a geometry of which some parts"):
        assert sum(warning.startswith(words) for warning in done.warnings) == 1, (words, done.warnings)


async def test_a_geometry_that_is_there_twice_is_told(converters: Converters) -> None:
    """One of them is read, as the scan reports."""
    done = await convert(converters, collection({**feature({"a": "x"}), "Geometry": None}), "Csv")
    assert any("more than once" in warning for warning in done.warnings)


REMEDIES = {
    "GeoJsonSeq": r"sourceEpsg, for example 4326 for longitude and latitude\.$",
    "Csv": "sourceEpsg.*keepCoordinates",
    "GeoPackage": "sourceEpsg.*keepCoordinates",
}
"""What the errors about an unknown system offer, by target."""
UNKNOWN_SYSTEMS: Mapping[str, object] = {
    "EPSG:999999": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::999999"}},
    "Lokal": {"type": "name", "properties": {"name": "Lokal"}},
    "EPSG:28992": {"type": "EPSG", "properties": {"name": "EPSG:28992"}},
    "": {"type": "name", "properties": {}},
}
"""Members `crs` for which the converter assumes WGS 84: one has a type whose name it does not read, one no name."""


@pytest.mark.parametrize("has_sessions", [True, False])
@pytest.mark.parametrize("claim", UNKNOWN_SYSTEMS)
async def test_an_unknown_system_is_not_taken_for_degrees(
    converters: Converters, claim: str, *, has_sessions: bool
) -> None:
    """It is refused with what to do, for targets that are converted directly and for others; each remedy works.

    Coordinates that are kept as they are cannot help a target that is always in one system.
    """
    document = collection(feature({"a": "x"}), crs=UNKNOWN_SYSTEMS[claim])
    named = rf"'.*{claim.rpartition(':')[2]}', which is not a known system" if claim else "does not record"
    asked = ConversionRequest(source_epsg=3857)
    for output, remedies in REMEDIES.items():
        with pytest.raises(Rejection, match=f"{named}.*{remedies}"):
            await convert(converters, document, output, has_sessions=has_sessions)
    converted = await convert(converters, document, "GeoJsonSeq", request=asked, has_sessions=has_sessions)
    assert 0 < _first_x(converted) < 0.0001
    kept = ConversionRequest(keep_coordinates=True)
    converted = await convert(converters, document, "GeoPackage", request=kept, has_sessions=has_sessions)
    with closing(sqlite3.connect(converted.path)) as database:
        assert database.execute("SELECT srs_id FROM gpkg_geometry_columns").fetchall() == [(-1,)]


@pytest.mark.parametrize("has_sessions", [True, False])
async def test_a_code_of_esri_called_one_of_epsg_is_not_taken_for_degrees(
    converters: Converters, *, has_sessions: bool
) -> None:
    """GDAL 3.6 does not know it, so it is refused; newer versions read it as Esri's, here in meters."""
    document = collection(feature({"a": "x"}), crs={"type": "name", "properties": {"name": "EPSG:102100"}})
    if converters.engine.capabilities.version.startswith("3.6."):
        for output, remedies in REMEDIES.items():
            with pytest.raises(Rejection, match=rf"'.*102100', which is not a known system.*{remedies}"):
                await convert(converters, document, output, has_sessions=has_sessions)
    else:
        converted = await convert(converters, document, "GeoJsonSeq", has_sessions=has_sessions)
        assert 0 < _first_x(converted) < 0.0001


async def test_systems_that_only_the_converter_knows_are_read(converters: Converters) -> None:
    """Names of other authorities, other forms of names, and codes that no database lists."""
    for crs, is_degrees in (
        ({"type": "name", "properties": {"name": "urn:ogc:def:crs:ESRI::102100"}}, False),
        ({"type": "EPSG", "properties": {"code": 3857}}, False),
        ({"type": "name", "properties": {"name": "EPSG:900913"}}, False),
        ({"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:2:84"}}, True),
        ({"type": "EPSG", "properties": {"code": 4326}}, True),
    ):
        converted = await convert(converters, collection(feature({"a": "x"}), crs=crs), "GeoJsonSeq")
        assert (_first_x(converted) == POINT["coordinates"][0]) is is_degrees, crs


def _first_x(converted: Output) -> float:
    first = json.loads(converted.path.read_text(encoding="utf-8").partition("\n")[0])
    return float(first["geometry"]["coordinates"][0])


@pytest.mark.parametrize("has_sessions", [True, False])
async def test_latitudes_at_the_poles_are_told_in_mercator(converters: Converters, *, has_sessions: bool) -> None:
    """Also of a document that could be converted without a work file; not of others, nor in other systems."""
    for latitude, epsg, is_told in ((-90, 3857, True), (85.1, 3395, True), (85.05, 3857, False), (-90, 3031, False)):
        document = collection(feature({"a": "x"}), feature({"a": "y"}, geometry("Point", [0, latitude])))
        request = ConversionRequest(target_epsg=epsg)
        converted = await convert(converters, document, "Csv", request=request, has_sessions=has_sessions)
        told = any("those beyond 85.06 degrees" in warning for warning in converted.warnings)
        assert told is is_told, (latitude, epsg, converted.warnings)


async def test_json_with_features_somewhere_is_refused(converters: Converters) -> None:
    """Of a map of uMap, the driver would read the geometry of the map and none of its features."""
    umap = {"type": "umap", "geometry": POINT, "layers": [json.loads(collection(feature({"a": "x"})))]}
    with pytest.raises(Rejection, match="JSON but not GeoJSON"):
        await convert(converters, json.dumps(umap).encode(), "Csv", "upload.json")


@pytest.mark.parametrize("ids", ["f", None], ids=["of features", "after properties"])
@pytest.mark.parametrize(("name", "output"), [("in.geojson", "GeoJsonSeq"), ("in.geojsonl", "GeoJson")])
async def test_json_keeps_what_columns_do_not_hold_in_a_scan_and_one_run(
    converters: Converters, name: str, output: str, ids: str | None
) -> None:
    """The scan also makes lines a collection. Ids count as the column that they become."""
    features = [
        feature({"a": n, "b": {"c": [n, 1.5]}} | ({} if ids or n % 2 else {"id": f"p{n}"}))
        | {"id": f"{ids or 'p'}{n}", "bbox": [0, 1, 2, 3], "by": {"n": n}}
        for n in range(2500)
    ]
    folder, outcomes, commands = converters.new_directory(), [], list[Command]()
    (folder / name).write_text("\n".join(map(json.dumps, features)))
    if name == "in.geojson":
        (folder / name).write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    source, target = detect(folder / name, name, folder / "unpacked"), find_output(output)

    async def run(command: Command) -> Verdict:
        commands.append(command)
        return await converters.run(command)

    for engine in converters.engines.values():
        commands.clear()
        async with engine.session(run, target) as held:
            look = await inspect_source(engine, held, source, target, folder)
            plan = plan_conversion(look.source, target, look.facts, UNASKED, engine.catalogue)
            await engine.convert(held, look.source, plan, folder)
            told = await verify_output(engine, held, look.source, plan, folder)
        outcomes.append(((await engine.collect(plan, folder)).path.read_bytes(), told))
    assert len(commands) == 2
    assert outcomes[0] == outcomes[1]
    text = outcomes[0][0]
    found = list(map(json.loads, text.splitlines())) if output == "GeoJsonSeq" else json.loads(text)["features"]
    assert [(each["id"], each["by"], each["properties"]["b"]) for each in found] == [
        (each["id"], each["by"], each["properties"]["b"]) for each in features
    ]
    assert not any("lacks" in difference for difference in outcomes[0][1])


@pytest.mark.parametrize("name", ["upload.geojson", "upload.geojsonl"])
@pytest.mark.parametrize("rest", [",{other}", ",\n{other}", '{{"a": 1}}{other}', " and more", '{other}{{"type": "Fea'])
async def test_what_follows_the_first_feature_is_read_or_the_file_refused(
    converters: Converters, name: str, rest: str
) -> None:
    """The driver would read the first feature alone, without an error."""
    one, other = (json.dumps(feature({"a": text})) for text in ("x", "y"))
    with pytest.raises(Rejection, match=r"Not every line|in the middle"):
        await convert(converters, (one + rest.format(other=other)).encode(), "Csv", name)


@pytest.mark.parametrize("name", ["upload.geojson", "upload.geojsonl"])
@pytest.mark.parametrize("padding", [0, LARGE])
@pytest.mark.parametrize("names", [[str(number) for number in range(MAX_FIELDS + 1)], ["x" * 5_000]])
async def test_no_driver_reads_a_document_with_more_names_than_columns(
    converters: Converters, name: str, padding: int, names: list[str]
) -> None:
    """It would make a column of each of hundreds of thousands, and then refuse the file."""
    folder, programs = converters.new_directory(), set()

    async def run(command: Command) -> Verdict:
        programs.add(command.argv[:3])
        return await converters.run(command)

    upload = folder / name
    document = json.dumps(feature(dict.fromkeys(names, 1))).encode()
    upload.write_bytes(document + b"\n" * padding)
    received = detect(upload, name, folder / "unpacked")
    with pytest.raises(Rejection, match=r"(?:more than 2,000 different|names of the) properties"):
        await inspect_source(converters.engine, run, received, find_output("Csv"), folder)
    assert programs <= {(converters.engine.capabilities.python, "-m", scan_program.__name__)}


@pytest.mark.parametrize(("columns", "turns"), [(20, 0), (2000, 1)])
async def test_others_have_their_turn_while_many_columns_are_scanned(
    converters: Converters, columns: int, turns: int
) -> None:
    """A document of 240 KB kept the event loop for a tenth of a second; a small one needs no thread."""
    upload, taken = converters.new_directory() / "in.geojson", list[None]()
    upload.write_bytes(collection(feature({f"c{number}": number for number in range(columns)}, POINT)))
    source = detect(upload, upload.name, upload.parent / "unpacked")
    asyncio.get_running_loop().call_soon(taken.append, None)
    await scan_document(converters.engine, converters.run, source)
    assert len(taken) == turns


BROKEN = b'{"type": "FeatureCollection", "features": [\n{"type": "Feature", "properties": {"a": x}, "geometry": null}]}'
REFUSED: Mapping[str, tuple[bytes, str]] = {
    "a word that is none": (BROKEN, "not valid JSON: see line 2"),
    "a program": (b"var data = " + collection(feature({}, POINT)), "not valid JSON: see line 1"),
    "blanks": (b" \n ", "The file is empty"),
    "a point without numbers": (b'{"type": "Point", "coordinates": ["a"]}', "coordinates do not match its type"),
}


@pytest.mark.parametrize("padding", [0, LARGE])
@pytest.mark.parametrize("case", REFUSED)
async def test_a_document_is_refused_in_the_words_of_its_scan(converters: Converters, case: str, padding: int) -> None:
    """The converter only said that it is damaged, cut off or something else."""
    document, told = REFUSED[case]
    with pytest.raises(Rejection, match=told):
        await convert(converters, document + b" " * padding, "Csv")


@pytest.mark.parametrize("output", ["GeoPackage", "Csv", "GeoJsonSeq"])
@pytest.mark.parametrize("padding", [0, LARGE])
async def test_documents_in_other_encodings_are_refused(converters: Converters, output: str, padding: int) -> None:
    """Their bytes were copied into results that no program could read."""
    document = collection(feature({"a": "é"}, POINT)).decode("unicode-escape").encode("latin-1")
    with pytest.raises(Rejection, match="The file is not UTF-8 text, which GeoJSON must be: see line 1"):
        await convert(converters, document + b" " * padding, output)


ESRI = '{"geometryType": "esriGeometryPoint", "spatialReference": {"wkid": 4326}, "features": [%s]}'
ROWS: Mapping[str, str] = {
    "a.geojsonl": '{"type": "Feature", "properties": {"a": "e"}, "geometry": null}\n'
    '{"type": "Feature", "properties": {"a": "é"}, "geometry": null}\n',
    "a.json": ESRI % '{"attributes": {"a": "e"}},\n{"attributes": {"a": "é"}, "geometry": {"x": 1, "y": 2}}',
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("has_sessions", [True, False])
async def test_other_json_in_other_encodings_is_refused_with_the_line(
    converters: Converters, name: str, *, has_sessions: bool
) -> None:
    """Their bytes were copied into results that no program could read, too."""
    with pytest.raises(Rejection, match=r"is not UTF-8 text, which .* must be: see line 2\. Save it as UTF-8"):
        await convert(converters, ROWS[name].encode("latin-1"), "GeoPackage", name, has_sessions=has_sessions)
