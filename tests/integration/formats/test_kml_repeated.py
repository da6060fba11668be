"""KML with data of one name several times in a feature."""

from pathlib import Path

import pytest

from service.formats.kml_repeated import CHUNK, MIXED
from service.formats.registry import find_output
from service.formats.text_checks import check_texts
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

KML = '<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{}</Document></kml>'
FEATURE = "<Placemark><ExtendedData>{}</ExtendedData><Point><coordinates>1,2</coordinates></Point></Placemark>"
SCHEMA = '<Schema name="s" id="s"><SimpleField name="Type" type="string"/></Schema>'
SIMPLE = '<SchemaData schemaUrl="#s">{}</SchemaData>'
DATA, SIMPLE_DATA = '<Data name="{}"><value>{}</value></Data>', '<SimpleData name="{}">{}</SimpleData>'
REPEATED = {
    "two cases": FEATURE.format(DATA.format("Type", "a") + DATA.format("type", "b")),
    "one name": FEATURE.format(DATA.format("Type", "a") + DATA.format("n", 1) + DATA.format("Type", "b")),
    "a Schema": SCHEMA
    + FEATURE.format(SIMPLE.format(SIMPLE_DATA.format("Type", "a") + SIMPLE_DATA.format("TYPE", "b"))),
    "two of a Schema": SCHEMA
    + FEATURE.format(SIMPLE.format(SIMPLE_DATA.format("Type", "a")) + SIMPLE.format(SIMPLE_DATA.format("Type", "b"))),
}
ONCE = (
    FEATURE.format(DATA.format("Type", "a")) + FEATURE.format(DATA.format("type", "b")),
    FEATURE.format(DATA.format("Type", "a") + '<Data name="type"/>'),
    FEATURE.format(DATA.format("\u00c9", "a") + DATA.format("\u00e9", "b")),
    FEATURE.format(DATA.format("Type", "a") + "<Data displayName='Type' name='b'><value>b</value></Data>"),
)
TOLD = "Features with several data of the same name, ignoring case ({}), such as 'type': only the last value is read."
CRAFTED = (b"<", b"<Data name=", b"<Data name='a' ", b" name=''", b" name='", b"name ", b"</ExtendedData", b"name=\"'")
NAMES = b"".join(b'<Data name="%d">' % number for number in range(200_000))


@pytest.mark.parametrize("content", REPEATED.values(), ids=REPEATED)
async def test_data_that_other_data_replaces_is_told(pipeline: Pipeline, tmp_path: Path, content: str) -> None:
    """The driver keeps the last value of a name."""
    path = tmp_path / "a.kml"
    path.write_text(KML.format(content), encoding="utf-8")
    done = await pipeline.to("Csv", path)
    (row,) = readers.table(done.path)
    assert row["Type"] == "b"
    assert TOLD.format(1) in done.output.warnings


@pytest.mark.parametrize("schema", ["", SCHEMA])
@pytest.mark.parametrize("is_first", [True, False])
async def test_data_beside_data_of_a_schema_with_its_name_is_told(
    pipeline: Pipeline, tmp_path: Path, schema: str, *, is_first: bool
) -> None:
    """The driver reads the value of the Schema, wherever it is; without one, the last of the two."""
    path = tmp_path / "a.kml"
    both = [DATA.format("type", "a"), SIMPLE.format(SIMPLE_DATA.format("Type", "b"))]
    content = schema + FEATURE.format("".join(both if is_first else reversed(both)))
    path.write_text(KML.format(content), encoding="utf-8")
    done = await pipeline.to("Csv", path)
    (row,) = readers.table(done.path)
    assert list(row.values())[1] == ("b" if schema or is_first else "a")
    assert (MIXED.format(1, "type") if schema else TOLD.format(1)) in done.output.warnings


@pytest.mark.parametrize("content", ONCE)
def test_data_that_stays_is_not_told(tmp_path: Path, content: str) -> None:
    """Data of one name in several features, without a value, or with letters that are two for the driver."""
    path = tmp_path / "a.kml"
    path.write_text(KML.format(content), encoding="utf-8")
    assert check_texts(find_output("Kml"), [path])[0] == []


@pytest.mark.parametrize("before", [0, *range(CHUNK - 200, CHUNK + 1, 9)])
def test_features_with_data_of_one_name_are_counted_wherever_they_begin(tmp_path: Path, before: int) -> None:
    """Also in two of the pieces in which a file is read."""
    path = tmp_path / "a.kml"
    path.write_text(KML.format(" " * before + 2 * REPEATED["two cases"]), encoding="utf-8")
    assert check_texts(find_output("Kml"), [path])[0] == [TOLD.format(2)]


@pytest.mark.parametrize(
    "part", [*(part * (3 * CHUNK // len(part)) for part in CRAFTED), NAMES], ids=[*map(repr, CRAFTED), "n"]
)
def test_crafted_data_is_read_once(tmp_path: Path, part: bytes) -> None:
    """A search that began anew at every byte would stop the service."""
    path = tmp_path / "a.kml"
    path.write_bytes(b"<kml><Data " + part + b"<" + REPEATED["two cases"].encode())
    assert check_texts(find_output("Kml"), [path])[0] == [TOLD.format(1)]
