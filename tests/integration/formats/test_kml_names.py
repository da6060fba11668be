"""Data of KML with the names of elements of KML, such as `name`, which its driver confuses with them."""

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
    ("<name/>", "Name", "b"): {"Name": "b"},
    ("<name></name>", "Name", "b &lt; c"): {"Name": "b < c"},
    ("<!-- <Data> --><description>a</description>", "Description", "b &lt; c"): {
        "description": "a",
        "Description2": "b < c",
    },
    ("", "description", "<![CDATA[<b>]]>"): {"description": "<b>"},
    ("", "begin", "Main Street"): {"begin": "Main Street"},
    ("", "begin", "2024/01/02"): {"begin": "2024/01/02"},
    ("<TimeStamp><when>2024-01-02</when></TimeStamp>", "timestamp", "b"): {
        "kml_element_timestamp": "2024/01/02 00:00:00",
        "timestamp": "b",
    },
    ("<TimeStamp><when>2024-01-02</when></TimeStamp>", "t", "b"): {"timestamp": "2024/01/02 00:00:00", "t": "b"},
    ("", "visibility", "high"): {"visibility": "high"},
    ("<visibility>0</visibility>", "t", "b"): {"visibility": "0", "t": "b"},
    ("", "ID", "7"): {"ID": "7"},
    ("", "icon", "a.png"): {"icon": "a.png"},
}
"""An element of a feature, the name of data beside it and its value, and what is read."""


@pytest.mark.parametrize("case", DOCUMENTS)
@pytest.mark.parametrize("has_schema", [True, False])
async def test_data_does_not_replace_elements(
    pipeline: Pipeline, tmp_path: Path, case: tuple[str, str, str], *, has_schema: bool
) -> None:
    """Nor does it get another name, unless the element is a text that differs: a warning says so."""
    element, name, value = case
    data = (SIMPLE if has_schema else DATA).format(name=name, value=value)
    schema = SCHEMA.format(name=name) if has_schema else ""
    path = tmp_path / "a.kml"
    point = "<Point><coordinates>1,2</coordinates></Point>"
    path.write_text(KML.format(f"{schema}<Placemark>{element}{data}{point}</Placemark>"), encoding="utf-8")
    done = await pipeline.to("Csv", path)
    (row,) = readers.table(done.path)
    kept = {column: text.strip() for column, text in row.items() if column not in {"X", "Y", "WKT"}}
    assert kept == DOCUMENTS[case]
    renamed = f"{name!r} became '{name}2'"
    assert sum(renamed in warning for warning in done.output.warnings) == (f"{name}2" in DOCUMENTS[case])


async def test_data_becomes_elements_only_where_a_feature_has_it(pipeline: Pipeline, tmp_path: Path) -> None:
    """What is quoted in a text is no data."""
    point = "<Point><coordinates>1,2</coordinates></Point>"
    text = f"{DATA.format(name='name', value='c')}</Placemark>"
    quoted = f"<description><![CDATA[{text}]]></description>"
    contents = (DATA.format(name="name", value="a"), "<name>b</name>", quoted, DATA.format(name="name", value=""))
    path = tmp_path / "a.kml"
    path.write_text(KML.format("".join(f"<Placemark>{content}{point}</Placemark>" for content in contents)))
    done = await pipeline.to("GeoJson", path)
    assert [row["properties"] for row in readers.geojson(done.path)] == [
        {"Name": name, "description": description}
        for name, description in (("a", None), ("b", None), (None, text), (None, None))
    ]
    assert done.output.warnings == ()


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
