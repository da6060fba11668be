"""KML of which the driver alone would read less than the file says."""

import json
import zipfile
from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.kml_repairs import (
    EMPTY,
    LONGEST_TAG,
    LONGEST_TARGET,
    MOST_EMPTY,
    SLACK,
    UNDECLARED,
    UNTYPED,
    mended,
)
from service.formats.left_out import CHUNK
from service.formats.registry import find_output
from service.formats.text_checks import check_texts
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

KML = '<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2"><Document>{}</Document></kml>'
PLACE = "<Placemark><name>a</name>{}</Placemark>"
POINT = "<Point><coordinates>1,2</coordinates></Point>"
TYPED = (
    '<ExtendedData><SchemaData schemaUrl="#s"><SimpleData name="n">00501</SimpleData><SimpleData name="e"/>'
    "<SimpleData\nname='t'><![CDATA[<b>]]></SimpleData></SchemaData>{}</ExtendedData>"
)
SIMPLE_DATA = '<ExtendedData><SchemaData schemaUrl="#s">{}</SchemaData></ExtendedData>'
SCHEMA = '<Schema name="s" id="s"><SimpleField name="N" type="string"/><SimpleField name="e" type="string"/></Schema>'
RING = "<LinearRing><coordinates>{0},{0} {1},{0} {1},{1} {0},{1} {0},{0}</coordinates></LinearRing>"
POLYGON = "<Polygon><outerBoundaryIs>{}</outerBoundaryIs>{}</Polygon>"
TRACK = (
    "<gx:Track>{}<ExtendedData><SchemaData><gx:SimpleArrayData name='hr'><gx:value>80</gx:value><gx:value>81</gx:value>"
    "</gx:SimpleArrayData></SchemaData></ExtendedData></gx:Track>"
)
WHENS = "<when>2020-01-01T00:0{}:00Z</when>"
COORDS = "<gx:coord>{0} {0} 5</gx:coord>"


def write(path: Path, content: str) -> Path:
    """The content in a Document, in a .kml or .kmz."""
    if path.suffix == ".kmz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("doc.kml", KML.format(content))
    else:
        path.write_text(KML.format(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["a.kml", "a.kmz"])
async def test_typed_data_is_read_without_its_schema(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    """The driver alone leaves all of it out, and data that has no type as well."""
    more = '<Data name="d"><value>x</value></Data>'
    path = write(tmp_path / name, PLACE.format(TYPED.format(more) + POINT))
    done = await pipeline.to("GeoPackage", path)
    (row,) = readers.geopackage(done.path)["a"]
    assert {row["n"], row["t"], row["d"]} == {"00501", "<b>", "x"}
    assert done.output.warnings[0] == UNTYPED


@pytest.mark.parametrize("is_last", [True, False])
async def test_typed_data_that_no_schema_declares_is_read(pipeline: Pipeline, tmp_path: Path, *, is_last: bool) -> None:
    """Names are the same whatever their case; GDAL itself writes dates without declaring them."""
    other = "<Schema id='o' name='o'><SimpleField type='string' name='f'/></Schema>"
    place = PLACE.format(TYPED.format("") + POINT)
    path = write(tmp_path / "a.kml", other + (place + SCHEMA if is_last else SCHEMA + place))
    done = await pipeline.to("GeoPackage", path)
    (row,) = readers.geopackage(done.path)["a"]
    assert (row["N"], row["t"]) == ("00501", "<b>")
    assert UNDECLARED.format("'t'") in done.output.warnings
    assert path.read_text(encoding="utf-8").count("<SimpleField") == 3


@pytest.mark.parametrize("name", ["a.kml", "a.kmz"])
async def test_true_and_false_are_read_as_they_are_declared(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    """The driver takes words for 0, so that all were false; texts that say the same stay texts."""
    schema = (
        '<Schema name="s" id="s"><SimpleField type="bool" name="Is b"/><SimpleField name="t" type="string"/></Schema>'
    )
    data = '<SimpleData name="is b">{0}</SimpleData><SimpleData\nname="t">{0}</SimpleData>'
    values = ["true", "false", "1", "0", "TRUE"]
    places = (PLACE.format(SIMPLE_DATA.format(data.format(value)) + POINT) for value in values)
    done = await pipeline.to("GeoJson", write(tmp_path / name, schema + "".join(places)))
    rows = [feature["properties"] for feature in json.loads(done.path.read_text())["features"]]
    assert [int(row["Is b"]) for row in rows] == [1, 0, 1, 0, 1]
    assert [row["t"] for row in rows] == values
    assert not any("read as numbers" in told for told in done.output.warnings)


async def test_typed_data_that_is_first_seen_late_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """To find out what to declare, the first MiB is looked at; what others have beyond it is lost."""
    first, late = PLACE.format(POINT), PLACE.format(TYPED.format("").replace('"n"', '"N"') + POINT)
    path = write(tmp_path / "a.kml", SCHEMA + first + "<!--" + "x" * CHUNK + "-->" + late)
    done = await pipeline.to("GeoPackage", path)
    rows = readers.geopackage(done.path)["a"]
    assert [(row["N"], "t" in row) for row in rows] == [(None, False), ("00501", False)]
    assert "Typed data that no Schema of the file declares ('t') was left out." in done.output.warnings


async def test_every_hole_is_read_of_several_in_one_boundary(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver alone reads the last."""
    holes = "<innerBoundaryIs>" + RING.format(1, 2) + "\n" + RING.format(3, 4) + "</innerBoundaryIs>"
    one = "<innerBoundaryIs>" + RING.format(5, 6) + "</innerBoundaryIs>"
    path = write(tmp_path / "a.kml", PLACE.format(POLYGON.format(RING.format(0, 9), holes + one)))
    done = await pipeline.to("Wkt", path)
    (area,) = done.path.read_text(encoding="utf-8").splitlines()
    assert [ring.split(",")[0].strip("( ") for ring in area.removeprefix("POLYGON").split("),")] == [
        "0 0",
        "1 1",
        "3 3",
        "5 5",
    ]


@pytest.mark.parametrize("around", ["{}", "<MultiGeometry>{}</MultiGeometry>", "<MultiGeometry>{0}{0}</MultiGeometry>"])
async def test_rings_outside_of_areas_are_lines(pipeline: Pipeline, tmp_path: Path, around: str) -> None:
    """The driver alone makes geometries of them that cannot be converted, or that only GDAL reads."""
    area = PLACE.format(POLYGON.format(RING.format(0, 9), ""))
    path = write(tmp_path / "a.kml", PLACE.format(around.format(RING.format(0, 1))) + area)
    done = await pipeline.to("Wkt", path)
    line, polygon = done.path.read_text(encoding="utf-8").splitlines()
    assert line.count("0 0,1 0,1 1,0 1,0 0") == around.count("{")
    assert (line.startswith(("LINESTRING", "MULTILINESTRING")), polygon.startswith("POLYGON ((0 0,")) == (True, True)


@pytest.mark.parametrize("is_in_turn", [True, False])
async def test_what_points_of_tracks_have_is_told(pipeline: Pipeline, tmp_path: Path, *, is_in_turn: bool) -> None:
    """The driver keeps the span of the times, and nothing else of single points."""
    times, places = [WHENS.format(at) for at in (1, 2, 3)], [COORDS.format(at) for at in (1, 2, 3)]
    points = [text for pair in zip(times, places, strict=True) for text in pair] if is_in_turn else times + places
    stamp = "<Placemark><TimeStamp><when>2020-01-01</when></TimeStamp>" + POINT + "</Placemark>"
    path = write(tmp_path / "a.kml", PLACE.format(TRACK.format("".join(points))) + stamp)
    done = await pipeline.to("GeoPackage", path)
    assert {
        "Times of points in tracks (3) were left out, except the first and the last of each track.",
        "Values of points in tracks (2), such as heart rates and angles, were left out.",
    } <= set(done.output.warnings)


@pytest.mark.parametrize(
    ("data", "is_told"),
    [
        ('<ExtendedData xmlns:x="http://x"><x:n>1</x:n><x:m>2</x:m></ExtendedData>', True),
        (
            '<ExtendedData>\n<Data name="d"><value>1</value></Data>\n<x:n xmlns:x="http://x">1</x:n></ExtendedData>',
            True,
        ),
        ('<ExtendedData><Data name="d"><value>1</value></Data><Data name="e"/></ExtendedData>', False),
        ("<ExtendedData></ExtendedData>", False),
        ("<ExtendedData/>", False),
    ],
)
async def test_data_of_other_namespaces_is_told(
    pipeline: Pipeline, tmp_path: Path, data: str, *, is_told: bool
) -> None:
    """KML allows it, and the driver leaves it out."""
    done = await pipeline.to("GeoPackage", write(tmp_path / "a.kml", PLACE.format(data + POINT)))
    assert any("other namespaces (1)" in warning for warning in done.output.warnings) == is_told


@pytest.mark.parametrize("shift", range(-3, 4))
def test_tags_are_mended_across_the_pieces_of_a_file(tmp_path: Path, shift: int) -> None:
    """A piece may end within a tag, and a text may look like a very long one."""
    start = KML.partition("{}")[0]
    filler = "<!--" + "x" * (CHUNK - len(start) - 10 + shift) + "-->"
    path = write(tmp_path / "a.kml", filler + TYPED.format("") + "<" + "y" * 2 * LONGEST_TAG)
    found, told = mended(path, tmp_path / "new" / "mended.kml")
    text = found.read_text(encoding="utf-8")
    assert told == UNTYPED
    assert '<ExtendedData><Data name="n"><value>00501</value></Data><Data name="e"/><Data\nname=\'t\'><value>' in text
    assert text.endswith("<" + "y" * 2 * LONGEST_TAG + KML.partition("{}")[2])


@pytest.mark.parametrize("text", ["<![CDATA[{}]]>", "<!--{}-->"])
@pytest.mark.parametrize("length", [0, 3 * LONGEST_TAG, CHUNK - 40, CHUNK])
@pytest.mark.parametrize("shift", range(4))
def test_texts_that_look_like_tags_stay_as_they_are(tmp_path: Path, text: str, length: int, shift: int) -> None:
    """In comments and CDATA nothing is a tag, wherever the pieces of a file end."""
    tags = "<SimpleData name='a'>5</SimpleData></SchemaData><LinearRing></LinearRing><SimpleData --><x" * 2
    kept = text.format(tags.replace("-->", "--") + "x" * (length + shift) + tags.replace("-->", "--"))
    path = write(tmp_path / "a.kml", kept + TYPED.format("") + RING.format(0, 1))
    found, _ = mended(path, tmp_path / "new" / "mended.kml")
    start, _, end = found.read_text(encoding="utf-8").partition(kept)
    assert start == KML.partition("{}")[0]
    assert end.count("<Data") == 3
    assert end.count("LineString") == 2


def test_a_schema_that_is_repeated_is_completed_once(tmp_path: Path) -> None:
    """Otherwise a crafted file of a MiB would become one of GiBs."""
    schemas = '<Schema id="s"></Schema>' * 999
    data = "".join(f'<SimpleData name="n{number}"/>' for number in range(999))
    path = write(tmp_path / "a.kml", SCHEMA + schemas + PLACE.format(SIMPLE_DATA.format(data)) + "</Schema>" * 999)
    found, _ = mended(path, tmp_path / "new" / "mended.kml")
    assert found.read_text(encoding="utf-8").count("<SimpleField") == 999 + SCHEMA.count("<SimpleField")


CRAFTED = (
    *(
        "<Schema id='",
        "<Schema id=",
        " id=",
        "<SimpleData ",
        "<SimpleData name='",
        "<!--",
        "<![CDATA[",
        "<![CDATA[]]",
        "-->",
    ),
    *(
        "</LinearRing>",
        "<LinearRing>",
        "<Folder>",
        "<Folder><Schema ",
        "<Folder><Schema id='a'><a>",
        "<a>",
        "<",
        "Data xmlns",
        "<gx:coord>",
        "<gx:coord>1 ",
        "</gx:coord>",
        "<gx:Track>",
        "<Schema name='",
        "<SchemaData ",
        "<SchemaData schemaUrl='",
        "<Point>",
        "<Point><a>",
        "<Point><coordinates>1,2 ",
        "1,2 ",
    ),
)
LONG_TAGS = tuple(
    (f"<{name} ", f" {attribute}=''")
    for name, attribute in (
        ("Schema", "id"),
        ("Schema", "name"),
        ("SchemaData", "schemaUrl"),
        ("SimpleData", "name"),
        ("Data", "name"),
        ("SimpleField", "type"),
    )
)


@pytest.mark.parametrize(("start", "part"), [*(("", part) for part in CRAFTED), *LONG_TAGS])
def test_each_part_of_a_crafted_file_is_passed_once(tmp_path: Path, start: str, part: str) -> None:
    """The time would grow with the square of the file's size, and nothing else of the service would run meanwhile."""
    parts = start + part * (CHUNK // len(part))
    schema = SCHEMA.replace("<SimpleField", "<SimpleField name='b' type='bool'/><SimpleField", 1)
    path = write(tmp_path / "a.kml", schema + TYPED.format("") + RING.format(0, 1) + parts)
    found, _ = mended(path, tmp_path / "new" / "mended.kml")
    assert "<LineString>" in found.read_text(encoding="utf-8")
    check_texts(find_output("Kml"), [write(tmp_path / "b.kml", PLACE.format("") + parts)])


def test_typed_data_gets_its_name_as_a_schema_declares_it(tmp_path: Path) -> None:
    """Since GDAL 3.12, the driver takes a name in another case for another name."""
    content = TYPED.replace('"n"', '" n "').replace("'t'", "'N'").format("")
    found, told = mended(write(tmp_path / "a.kml", SCHEMA + PLACE.format(content)), tmp_path / "new" / "mended.kml")
    text = found.read_text(encoding="utf-8")
    assert text == KML.format(SCHEMA + PLACE.format(content.replace('" n "', '"N"')))
    assert told == ""


@pytest.mark.parametrize(
    "content",
    [SCHEMA + TYPED.replace('"n"', "'N'").replace("'t'", "'N'").format(""), POLYGON.format(RING.format(0, 1), ""), ""],
)
def test_a_file_with_nothing_to_mend_stays_as_it_is(tmp_path: Path, content: str) -> None:
    """No copy is made."""
    path = write(tmp_path / "a.kml", PLACE.format(content))
    assert mended(path, tmp_path / "new" / "mended.kml") == (path, "")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("cut", range(1, len("</outerBoundaryIs>")))
def test_a_boundary_that_a_piece_of_the_file_cuts_off_is_not_mended(tmp_path: Path, cut: int) -> None:
    """To write the file anew takes longer than everything else that is done with its text."""
    before, end, after = KML.format(PLACE.format(POLYGON.format(RING.format(0, 1), ""))).partition("</outerBoundaryIs>")
    start, mark, rest = before.partition("<Placemark")
    filler = " " * (CHUNK - len(before) - cut)
    path = tmp_path / "a.kml"
    path.write_text(start + filler + mark + rest + end + after, encoding="utf-8")
    assert mended(path, tmp_path / "new" / "mended.kml") == (path, "")


@pytest.mark.parametrize("name", ["a.kml", "a.kmz"])
async def test_a_model_among_geometries_is_left_out(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    """The driver alone crashes on it, and the file was called damaged."""
    model = "<Model id='m'><Location><longitude>1</longitude><latitude>2</latitude></Location></Model>"
    places = [f"<MultiGeometry>{POINT}{model}</MultiGeometry>", f"<MultiGeometry>{model}</MultiGeometry>", "<Model/>"]
    done = await pipeline.to("Csv", write(tmp_path / name, "".join(map(PLACE.format, places))))
    assert [row["WKT"] for row in readers.table(done.path)] == ["MULTIPOINT ((1 2))", "", ""]
    assert any(warning.startswith("Models (3) were left out, with the places") for warning in done.output.warnings)


POSITIONS = {
    ("1 2 3", "", "4 5 6"): ([[1, 2, 3], [1, 2, 3], [4, 5, 6]], 1),
    ("", " ", "1 2 3", "", ""): ([[1, 2, 3]] * 5, 4),
    ("1\t2\n3", " 4  5 "): ([[1, 2, 3], [4, 5, 0]], 0),
    ("1,2,3", "4 , 5,6"): ([[1, 2, 3], [4, 5, 6]], 0),
    ("-1e0 2 3", "4 5 6"): ([[-1, 2, 3], [4, 5, 6]], 0),
}
"""By texts of positions in a track: the positions, and how many of them are told."""


@pytest.mark.parametrize("texts", POSITIONS)
@pytest.mark.parametrize("form", ["<gx:coord>{}</gx:coord>", "<gx:coord\n>{}</gx:coord >"])
async def test_positions_of_tracks_are_read_whatever_is_between_their_numbers(
    pipeline: Pipeline, tmp_path: Path, texts: tuple[str, ...], form: str
) -> None:
    """The driver alone takes what follows a tab or a comma for 0, and an empty position for 0, 0."""
    positions, empty = POSITIONS[texts]
    content = "".join(WHENS.format(at) for at in range(len(texts))) + "".join(map(form.format, texts))
    path = write(tmp_path / "a.kml", PLACE.format(f"<gx:Track>{content}</gx:Track>"))
    done = await pipeline.to("GeoJson", path)
    (feature,) = json.loads(done.path.read_text(encoding="utf-8"))["features"]
    assert feature["geometry"]["coordinates"] == positions
    assert feature["properties"]["end"] == f"2020-01-01T00:0{len(texts) - 1}:00Z"
    told = [warning for warning in done.output.warnings if "ositions of tracks" in warning]
    assert told == ([EMPTY.format(count=empty)] if empty else [])


@pytest.mark.parametrize("text", ["1,5 2,5 3", "1 2 3 4", "a b c", "1"])
async def test_positions_of_tracks_that_are_no_numbers_are_told(pipeline: Pipeline, tmp_path: Path, text: str) -> None:
    """What they were to be is not known."""
    track = WHENS.format(1) + WHENS.format(2) + COORDS.format(1) + f"<gx:coord>{text}</gx:coord>"
    path = write(tmp_path / "a.kml", PLACE.format(f"<gx:Track>{track}</gx:Track>"))
    done = await pipeline.to("GeoJson", path)
    assert any(warning.startswith("Positions of tracks (1) that are not two") for warning in done.output.warnings)


def test_a_position_is_not_repeated_without_end(tmp_path: Path) -> None:
    """A crafted file of some MiB would become one of GiBs."""
    track = f"<gx:Track>{COORDS.format(1)}{'<gx:coord/>' * (MOST_EMPTY + 1)}</gx:Track>"
    with pytest.raises(Rejection, match="Leave them out"):
        mended(write(tmp_path / "a.kml", track), tmp_path / "new" / "mended.kml")
    long = f"<gx:Track><gx:coord>{'1' * LONGEST_TAG} 2</gx:coord>{'<gx:coord/>' * 99}</gx:Track>"
    found, _ = mended(write(tmp_path / "b.kml", long), tmp_path / "new" / "b.kml")
    assert found.stat().st_size < 2 * LONGEST_TAG


NEWER = {
    "a track": "<Track><altitudeMode>absolute</altitudeMode>{}<angles>1 2 3</angles></Track>",
    "a track of the extension": "<MultiTrack><gx:Track>{}<gx:angles>1 2 3</gx:angles></gx:Track></MultiTrack>",
    "values": "<MultiTrack\n><Track>{}<ExtendedData><SchemaData><SimpleArrayData name='h'><value>1</value>"
    "</SimpleArrayData></SchemaData></ExtendedData></Track></MultiTrack>",
}


@pytest.mark.parametrize("newer", NEWER)
@pytest.mark.parametrize("has_times", [True, False])
async def test_tracks_of_kml_2_3_are_read(pipeline: Pipeline, tmp_path: Path, newer: str, *, has_times: bool) -> None:
    """The driver alone knows those of the extension that became this version, and leaves out the others."""
    positions = (COORDS.format(1) + "<gx:coord>2,2,5</gx:coord>").replace("gx:", "gx:" if "extension" in newer else "")
    times = WHENS.format(1) + WHENS.format(2) if has_times else ""
    path = write(tmp_path / "a.kml", PLACE.format(NEWER[newer].format(times + positions)))
    done = await pipeline.to("GeoJson", path)
    (feature,) = json.loads(done.path.read_text(encoding="utf-8"))["features"]
    assert feature["geometry"]["coordinates"] in ([[1, 1, 5], [2, 2, 5]], [[[1, 1, 5], [2, 2, 5]]])
    assert feature["properties"].get("end") == ("2020-01-01T00:02:00Z" if has_times else None)
    assert "Values of points in tracks (1), such as heart rates and angles, were left out." in done.output.warnings


@pytest.mark.parametrize("tag", ["Track", "MultiTrack"])
def test_what_is_no_track_of_kml_2_3_stays(tmp_path: Path, tag: str) -> None:
    """In a description, for instance, nothing is a tag."""
    text = f"<![CDATA[<{tag}><coord>1,2</coord>]]><!-- <angles> --><Tracks/><MultiTracks/><coords/>"
    found, _ = mended(write(tmp_path / "a.kml", f"<{tag}>{text}</{tag}>"), tmp_path / "new" / "mended.kml")
    assert f"<gx:{tag}>{text}</gx:{tag}>" in found.read_text(encoding="utf-8")


LONG_ID = f"<Schema id='{'s' * LONGEST_TAG}' name='s'>{{}}</Schema>" + SIMPLE_DATA.format("<SimpleData name='a'/>")
LACKING = {
    "ids of a Schema": LONG_ID.format("") + "<SchemaData>" * 999,
    "ids in what is moved": f"<Folder>{LONG_ID.format('<SchemaData>' * 999)}</Folder>",
    "boundaries": f"<innerBoundaryIs>{'<LinearRing>' * 99_999}</innerBoundaryIs></LinearRing><a>",
}


@pytest.mark.parametrize("lacking", LACKING)
def test_what_a_crafted_file_lacks_is_not_added_without_end(tmp_path: Path, lacking: str) -> None:
    """A file of 100 kB became one of GiBs, on the disk and in memory; one of 100 MB filled any disk."""
    path, target = write(tmp_path / "a.kml", LACKING[lacking]), tmp_path / "new" / "mended.kml"
    with pytest.raises(Rejection, match="Shorten the ids"):
        mended(path, target)
    assert target.stat().st_size <= LONGEST_TARGET * path.stat().st_size + SLACK


@pytest.mark.parametrize("cut", range(1, len("<gx:coord>1,2</gx:coord></gx:Track>")))
def test_positions_are_mended_across_the_pieces_of_a_file(tmp_path: Path, cut: int) -> None:
    before, position, after = KML.format("<gx:Track><gx:coord>1,2</gx:coord></gx:Track>").partition("<gx:coord>1,2")
    path = tmp_path / "a.kml"
    path.write_text(before + " " * (CHUNK - len(before) - cut) + position + after, encoding="utf-8")
    found, _ = mended(path, tmp_path / "new" / "mended.kml")
    assert "<gx:coord>1 2</gx:coord>" in found.read_text(encoding="utf-8")


STRAY = {
    "a Schema with a name alone": ("name='s'", ' schemaUrl="#s"'),
    "no Schema named": ("id='s' name='s'", ""),
    "another Schema named": ("id='s'", " schemaUrl='#t'"),
    "a Schema of another file": ("id='s'", " schemaUrl='http://example.org/a.kml#s'"),
    "a name alone, and no Schema named": ("name='s'", ""),
}
"""What a Schema is called, and by what data refers to it."""


@pytest.mark.parametrize("kind", STRAY)
@pytest.mark.parametrize("around", ["{}", "<Folder><name>a</name>{}</Folder>"])
async def test_typed_data_that_names_no_schema_is_read(
    pipeline: Pipeline, tmp_path: Path, kind: str, around: str
) -> None:
    """In a Folder, the driver alone leaves it out; what the Schema does not declare is read as texts, and told once."""
    called, url = STRAY[kind]
    schema = f"<Schema {called}><SimpleField type='int' name='n'/></Schema>"
    data = f"<SchemaData{url}><SimpleData name='n'>5</SimpleData><SimpleData name='m'>07</SimpleData></SchemaData>"
    place = PLACE.format(f"<ExtendedData>{data}</ExtendedData>{POINT}")
    done = await pipeline.to("GeoPackage", write(tmp_path / "a.kml", schema + around.format(place)))
    (row,) = readers.geopackage(done.path)["a"]
    assert (row["n"], row["m"]) == (5, "07")
    assert done.output.warnings == (UNDECLARED.format("'m'"),)


async def test_points_with_several_positions_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver reads the first."""
    points = [f"<Point><extrude>0</extrude><coordinates>{text}</coordinates></Point>" for text in ("1,2 3,4", "1, 2\n")]
    done = await pipeline.to("Csv", write(tmp_path / "a.kml", "".join(map(PLACE.format, points))))
    told = [warning for warning in done.output.warnings if "several positions" in warning]
    assert [warning[:10] for warning in told] == ["Points (1)"]
