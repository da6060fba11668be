"""Data of KML with the names of elements of KML, such as `name`, which its driver confuses with them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
SCHEMA = '<Schema name="s" id="s"><SimpleField name="{name}" type="string"/></Schema>'
VALUE = '<SimpleData name="{name}">{value}</SimpleData>'
SIMPLE = f'<ExtendedData><SchemaData schemaUrl="#s">{VALUE}</SchemaData></ExtendedData>'
DATA = '<ExtendedData><Data name="{name}"><value>{value}</value></Data></ExtendedData>'
DOCUMENTS = {
    ("<name>a</name>", "NAME", "b"): {"Name": "a", "NAME2": "b"},
    ("<name>a</name>", "name", "<![CDATA[ a ]]>"): {"Name": "a"},
    ("", "Name", "b"): {"Name": "b"},
    ("<description>a</description>", "Description", "b &lt; c"): {"description": "a", "Description2": "b < c"},
    ("", "begin", "Main Street"): {"begin2": "Main Street"},
    ("", "begin", "2024-01-02"): {"begin": "2024/01/02 00:00:00"},
    ("", "begin", "2024/01/02"): {"begin": "2024/01/02 00:00:00"},
    ("", "end", "2024/01/02 03:04:05"): {"end": "2024/01/02 03:04:05"},
    ("", "end", "2024/1/2 03:04:05"): {"end2": "2024/1/2 03:04:05"},
    ("", "visibility", "high"): {"visibility2": "high"},
    ("<visibility>0</visibility>", "t", "b"): {"visibility": "0", "t": "b"},
}
"""An element of a feature, the name of data beside it and its value, and what is read."""


@pytest.mark.parametrize("case", DOCUMENTS)
@pytest.mark.parametrize("has_schema", [True, False])
async def test_data_does_not_replace_elements(
    pipeline: Pipeline, tmp_path: Path, case: tuple[str, str, str], *, has_schema: bool
) -> None:
    """It is renamed if it has other content, or is not of the type of the element; a warning says so.

    Newer drivers give it a column of its own in any case, which may be empty.
    """
    element, name, value = case
    data = (SIMPLE if has_schema else DATA).format(name=name, value=value)
    schema = SCHEMA.format(name=name) if has_schema else ""
    path = tmp_path / "a.kml"
    point = "<Point><coordinates>1,2</coordinates></Point>"
    path.write_text(KML.format(f"{schema}<Placemark>{element}{data}{point}</Placemark>"), encoding="utf-8")
    done = await pipeline.to("Csv", path)
    (row,) = readers.table(done.path)
    kept = {column: text.strip() for column, text in row.items() if column not in {"X", "Y", "WKT"}}
    assert kept in (DOCUMENTS[case], *_in_columns_of_their_own(DOCUMENTS[case], name, kept))
    renamed = f"{name!r} became '{name}2'"
    assert sum(renamed in warning for warning in done.output.warnings) == (f"{name}2" in DOCUMENTS[case])


def _in_columns_of_their_own(
    expected: Mapping[str, str], name: str, kept: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """The same content with another column for data with the name of an element, beside that of the element or not."""
    own, element = f"{name}2", next((column for column in expected if column.lower() == name.lower()), "")
    if own not in expected and element:
        yield {**expected, own: ""}
        yield {**expected, own: expected[element]}
        yield {own: kept.get(own, "")} if _digits(kept.get(own, "")) == _digits(expected[element]) else {}


def _digits(text: str) -> str:
    """A text without what is written differently in dates."""
    return text.replace("-", "/").removesuffix(" 00:00:00")


async def test_data_gets_a_name_that_is_free(either: Pipeline, tmp_path: Path) -> None:
    """However the file is read."""
    path = tmp_path / "a.kml"
    data = DATA.format(name="Name", value="b") + DATA.format(name="name2", value="c")
    data = data.replace("</ExtendedData><ExtendedData>", "")
    path.write_text(
        KML.format(f"<Placemark><name>a</name>{data}<Point><coordinates>1,2</coordinates></Point></Placemark>"),
        encoding="utf-8",
    )
    done = await either.to("Csv", path)
    (row,) = readers.table(done.path)
    assert (row["Name"], row["Name3"], row["name2"]) == ("a", "b", "c")
    assert done.output.warnings == (
        "Data with the names of elements of KML, but other content, was renamed: 'Name' became 'Name3'.",
    )


async def test_a_file_of_many_tags_without_ends_is_read(pipeline: Pipeline, tmp_path: Path) -> None:
    """To look for the end of each in the whole rest of the file would take hours."""
    path = tmp_path / "a.kml"
    tags = '<Placemark><Data name="name"><value><name>' * 50_000
    point = "<Point><coordinates>1,2</coordinates></Point>"
    path.write_text(
        KML.format(f"<Placemark><name>a</name><description><![CDATA[{tags}]]></description>{point}</Placemark>"),
        encoding="utf-8",
    )
    done = await pipeline.to("GeoJson", path)
    (row,) = readers.geojson(done.path)
    assert row["properties"] == {"Name": "a", "description": tags}
