"""What the driver of KML leaves out, beside what it keeps."""

from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

SCHEMA = '<Schema name="s" id="s"><SimpleField name="t" type="string"/></Schema>'
CONTENT = "<name>&#32; n</name><Snippet> low </Snippet><address>1 Street</address><phoneNumber>tel:5</phoneNumber>"
DATA = '<ExtendedData><Data name="u"><value> v</value></Data></ExtendedData>'
VALUE = '<SimpleData name="t">&#32;x&#x20;</SimpleData>'
SIMPLE = f'<ExtendedData><SchemaData schemaUrl="#s">{VALUE}</SchemaData></ExtendedData>'
UNDECLARED = (
    "Data of features (1) may have been left out: outside of folders, only what the Schema declares is read. Put these "
    "features into a Folder to keep it."
)
AROUND = "Blanks around snippets (1) were left out."
ADDRESSES = "Addresses and phone numbers of features (2) were left out."
NO_DAYS = (
    "Times that are only a month or a year (2) were not kept as such: a month became its first moment, and a year was "
    "left out."
)
NO_TIMES = (
    "Times (1) that are not written like 2020-01-02T03:04:05Z may be missing, or have lost the time of day or the zone."
)
CAMERAS = (
    "Cameras (1) were left out, except that the one of a feature without geometry became its geometry, with columns "
    "such as heading and tilt."
)
FINE = "Times with digits beyond milliseconds (1) were rounded to these, or left out."


def at(*times: str) -> str:
    """A feature with these times, each as a TimeStamp or as the ends of a TimeSpan."""
    if len(times) == 1:
        return f"<name>n</name><TimeStamp><when>{times[0]}</when></TimeStamp>"
    return f"<name>n</name><TimeSpan><begin>{times[0]}</begin><end>{times[1]}</end></TimeSpan>"


DOCUMENTS = {
    "data": (CONTENT + DATA, {"Name": "  n", "u": " v", "snippet": "low"}, {AROUND, ADDRESSES}),
    "data beside a Schema": (
        CONTENT + DATA,
        {"Name": "  n"},
        {
            AROUND,
            ADDRESSES,
            "Snippets (1) were left out.",
            UNDECLARED,
        },
    ),
    "blanks beside a Schema": (
        SIMPLE,
        {"t": "x"},
        {
            "Blanks and line ends at the beginning of texts (1) were left out.",
            "Blanks at the end of texts (1) were left out.",
        },
    ),
    "times that are no days": (
        "<name>n</name><TimeSpan><begin>2020-01</begin><end> 2021 </end></TimeSpan>",
        {"Name": "n", "begin": "2020-01-01T00:00:00"},
        {NO_DAYS},
    ),
    "days": (
        "<name>n</name><TimeStamp><when>2020-01-02</when></TimeStamp>",
        {"Name": "n", "timestamp": "2020-01-02T00:00:00"},
        set(),
    ),
    "a camera": (
        "<name>n</name><Camera><longitude>1</longitude><latitude>2</latitude><tilt>7</tilt></Camera>",
        {"Name": "n"},
        {CAMERAS},
    ),
    "a blank in a time": (at("2020-01-02 03:04:05"), {"Name": "n", "timestamp": "2020-01-02T00:00:00"}, {NO_TIMES}),
    "a blank before a zone": (
        at("2020-01-02T03:04:05 Z"),
        {"Name": "n", "timestamp": "2020-01-02T03:04:05"},
        {NO_TIMES},
    ),
    "a time without hyphens": (at("20200102T030405Z"), {"Name": "n"}, {NO_TIMES}),
    "minutes with a zone": (at("2020-01-02T03:04Z"), {"Name": "n", "timestamp": "2020-01-02T03:04:00"}, {NO_TIMES}),
    "minutes": (at("2020-01-02T03:04"), {"Name": "n", "timestamp": "2020-01-02T03:04:00"}, set()),
    "times with blanks around them": (
        at(" 2020-01-02T03:04:05Z", "\n2020-01-02T03:04:05.120000-05:30 "),
        {"Name": "n", "begin": "2020-01-02T03:04:05Z", "end": "2020-01-02T03:04:05.120-05:30"},
        set(),
    ),
    "microseconds": (at("2020-01-02T03:04:05.123456Z"), {"Name": "n", "timestamp": "2020-01-02T03:04:05.123Z"}, {FINE}),
}
"""Features, what is left of them, and what is told."""


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_what_the_driver_leaves_out_of_a_feature_is_told(either: Pipeline, tmp_path: Path, name: str) -> None:
    """A Schema hides data and snippets that it does not declare; addresses and phone numbers are never read."""
    content, kept, told = DOCUMENTS[name]
    path = tmp_path / "a.kml"
    path.write_text(
        f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{SCHEMA if "Schema" in name else ""}<Placemark>'
        f"{content}<Point><coordinates>1,2</coordinates></Point></Placemark></Document></kml>",
        encoding="utf-8",
    )
    done = await either.to("GeoJson", path)
    (found,) = (row["properties"] for row in readers.geojson(done.path))
    assert isinstance(found, dict)
    assert {column: value for column, value in found.items() if value is not None} == kept
    assert set(done.output.warnings) == told


async def test_rings_beside_others_in_an_outer_boundary_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Those in an inner one are read, each as a hole of its own; so nothing is told of them."""
    rings = [
        f"<LinearRing><coordinates>{x},0 {x + 1},0 {x + 1},1 {x},0</coordinates></LinearRing>" for x in (0, 5, 6, 7)
    ]
    outer, inner = f"<outerBoundaryIs>{rings[0]}\n{{}}</outerBoundaryIs>", f"<innerBoundaryIs>{rings[2]}{rings[3]}"
    for second, told in ((rings[1], True), ("", False)):
        path = tmp_path / f"{told}.kml"
        area = f"<Polygon>{outer.format(second)}{inner}</innerBoundaryIs></Polygon>"
        path.write_text(f'<kml xmlns="http://www.opengis.net/kml/2.2"><Placemark>{area}</Placemark></kml>')
        done = await pipeline.to("GeoPackage", path)
        assert [warning.startswith("Rings (1) were left out") for warning in done.output.warnings] == [True] * told


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be"])
async def test_text_in_utf_16_is_looked_at_as_any_other(pipeline: Pipeline, tmp_path: Path, encoding: str) -> None:
    """Its typed data without a Schema is read, and what is left out is told."""
    declared = f'<?xml version="1.0" encoding="{encoding[:6].upper()}" standalone="yes"?>\n'
    text = (
        f'{declared}<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark><name>Ł 日</name>{SIMPLE}'
        "<address>1 Street</address><Point><coordinates>1,2</coordinates></Point></Placemark></Document></kml>"
    )
    path = tmp_path / "a.kml"
    path.write_bytes(text.replace("UTF-8", "utf-8").encode(encoding))
    done = await pipeline.to("GeoJson", path)
    (found,) = (row["properties"] for row in readers.geojson(done.path))
    assert isinstance(found, dict)
    assert (found["Name"], found["t"]) == ("Ł 日", " x ")
    assert len(done.output.warnings) == 2


@pytest.mark.parametrize("is_in_folder", [True, False])
async def test_data_that_a_schema_does_not_declare_is_read_in_folders(
    pipeline: Pipeline, tmp_path: Path, *, is_in_folder: bool
) -> None:
    """As the warning says."""
    place = (
        "<Placemark><ExtendedData><Data name='k'><value>5</value></Data></ExtendedData><Point><coordinates>1,2"
        "</coordinates></Point></Placemark>"
    )
    places = f"<Folder><name>f</name>{place}</Folder>" if is_in_folder else place
    path = tmp_path / "a.kml"
    path.write_text(
        "<kml xmlns='http://www.opengis.net/kml/2.2'><Document><Schema name='s' id='s'><SimpleField name='a' "
        f"type='string'/></Schema>{places}</Document></kml>"
    )
    (found,) = readers.geojson((await pipeline.to("GeoJson", path)).path)
    assert found["properties"] == ({"k": "5"} if is_in_folder else {"a": None})


@pytest.mark.parametrize(
    ("value", "read"), [("1<i>2</i>3", "13"), ("<i>2</i>", None), ("<![CDATA[1<i>2</i>3]]>", "1<i>2</i>3"), ("1", "1")]
)
@pytest.mark.parametrize("is_declared", [True, False])
async def test_elements_within_values_are_told(
    pipeline: Pipeline, tmp_path: Path, value: str, read: str | None, *, is_declared: bool
) -> None:
    """The driver joins what is before and behind them; markup in CDATA is a text."""
    data = f'<SchemaData schemaUrl="#s"><SimpleData name="t">{value}</SimpleData></SchemaData>'
    if not is_declared:
        data = f'<Data name="t"><value>{value}</value></Data>'
    path = tmp_path / "a.kml"
    path.write_text(
        f"<kml xmlns='http://www.opengis.net/kml/2.2'><Document>{SCHEMA * is_declared}<Placemark><ExtendedData>{data}"
        "</ExtendedData><Point><coordinates>1,2</coordinates></Point></Placemark></Document></kml>"
    )
    done = await pipeline.to("GeoJson", path)
    (found,) = readers.geojson(done.path)
    assert found["properties"] in ({"t": read}, {"t": read or ""})
    told = [warning.startswith("Elements within values of data (1) were left out") for warning in done.output.warnings]
    assert told == [True] * (value[-1] != "1" and "CDATA" not in value)
