"""Typed data of KML is read whatever its names are, and wherever its Schema is."""

from pathlib import Path

import pytest

from service.formats.kml_repairs import UNTYPED
from service.formats.left_out import CHUNK
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_kml_repairs import KML, PLACE, POINT, SCHEMA, SIMPLE_DATA, TYPED

NAMES = {
    "quotation mark": ("'q\"x'", 'q"x', "<SimpleField name='a' type='int'/>"),
    "bracket": ('"a>b"', "a>b", "<SimpleField name='a' type='int'/>"),
    "bracket, and no Schema": ("'a>b'", "a>b", ""),
    "reference": ('"R&amp;D"', "R&D", "<SimpleField name='a' type='int'/>"),
}
"""How a name is written, the name, and what a Schema declares beside it."""


def write(path: Path, content: str) -> Path:
    """The content in a Document."""
    path.write_text(KML.format(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", NAMES)
async def test_typed_data_is_read_whatever_its_name(pipeline: Pipeline, tmp_path: Path, kind: str) -> None:
    """XML allows more in the value of an attribute than programs usually write."""
    written, name, fields = NAMES[kind]
    schema = f"<Schema id='s'>{fields}</Schema>" if fields else ""
    data = SIMPLE_DATA.format(f"<SimpleData name={written}>5</SimpleData>")
    done = await pipeline.to("GeoPackage", write(tmp_path / "a.kml", schema + PLACE.format(data + POINT)))
    (row,) = readers.geopackage(done.path)["a"]
    assert row[name] == "5"
    assert not any("left out" in warning for warning in done.output.warnings)


async def test_names_with_references_are_declared_as_they_are(pipeline: Pipeline, tmp_path: Path) -> None:
    """One name may be written in several ways."""
    schema = '<Schema id="s"><SimpleField name="R&#38;D" type="int"/></Schema>'
    data = SIMPLE_DATA.format('<SimpleData name="R&amp;D">5</SimpleData>')
    done = await pipeline.to("GeoPackage", write(tmp_path / "a.kml", schema + PLACE.format(data + POINT)))
    (row,) = readers.geopackage(done.path)["a"]
    assert (row["R&D"], done.output.warnings) == (5, ())


@pytest.mark.parametrize(
    "schema",
    ['<Schema id="s"/>', "<Schema id='s'></Schema>", "<Schema id='s'><gx:SimpleArrayField name='h'/></Schema>"],
)
async def test_typed_data_of_an_empty_schema_is_read(pipeline: Pipeline, tmp_path: Path, schema: str) -> None:
    """The driver alone leaves it out."""
    path = write(tmp_path / "a.kml", schema + PLACE.format(TYPED.format("") + POINT))
    done = await pipeline.to("GeoPackage", path)
    (row,) = readers.geopackage(done.path)["a"]
    assert (row["n"], row["t"]) == ("00501", "<b>")


async def test_typed_data_whose_only_schema_is_in_a_comment_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """It declares nothing."""
    path = write(tmp_path / "a.kml", f"<!--{SCHEMA}-->" + PLACE.format(TYPED.format("") + POINT))
    done = await pipeline.to("GeoPackage", path)
    assert "Typed data that no Schema of the file declares ('e', 'n', 't') was left out." in done.output.warnings


@pytest.mark.parametrize("before", ["", "<!--" + "x" * CHUNK + "-->"], ids=["early", "late"])
async def test_schemas_in_folders_are_read(pipeline: Pipeline, tmp_path: Path, before: str) -> None:
    """GDAL 1 wrote them there, and the driver reads those of Documents alone."""
    folder = (
        "<Folder><name>{0}</name><Schema name='{0}' id='{0}'><SimpleField name='{0}n' type='int'/></Schema>"
        "<Placemark><ExtendedData><SchemaData schemaUrl='#{0}'><SimpleData name='{0}n'>5</SimpleData></SchemaData>"
        "</ExtendedData>" + POINT + "</Placemark></Folder>"
    )
    path = write(tmp_path / "a.kml", folder.format("a") + before + folder.format("b"))
    done = await pipeline.to("GeoPackage", path)
    layers = readers.geopackage(done.path)
    assert ([row["an"] for row in layers["a"]], [row["bn"] for row in layers["b"]]) == ([5], [5])


async def test_typed_data_is_read_where_there_is_no_document_for_its_schema(pipeline: Pipeline, tmp_path: Path) -> None:
    """A Folder may be the outermost feature."""
    path = write(tmp_path / "a.kml", SCHEMA + PLACE.format(TYPED.format("") + POINT))
    path.write_text(path.read_text(encoding="utf-8").replace("Document>", "Folder>"), encoding="utf-8")
    done = await pipeline.to("GeoPackage", path)
    (row,) = readers.geopackage(done.path)["a"]
    assert (row["n"], row["t"]) == ("00501", "<b>")
    assert UNTYPED in done.output.warnings


async def test_declared_numbers_that_are_none_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Programs that calculate write NaN where they have no number."""
    data = SIMPLE_DATA.format('<SimpleData name="n">{}</SimpleData>')
    places = "".join(PLACE.format(data.format(number) + POINT) for number in ("1.5", "nan"))
    schema = '<Schema name="s" id="s"><SimpleField name="n" type="double"/></Schema>'
    done = await either.to("GeoPackage", write(tmp_path / "a.kml", schema + places))
    (rows,) = readers.geopackage(done.path).values()
    assert [row["n"] for row in rows] == [1.5, None]
    assert "KML holds numbers that are NaN; 1 value of 'n' became missing." in done.output.warnings
