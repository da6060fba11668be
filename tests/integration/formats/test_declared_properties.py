"""What columns declare of their values does not change these, and is told where it is left out."""

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.formats.table.databases import CODES_LEFT_OUT, DESCRIPTIONS_LEFT_OUT, RULES_LEFT_OUT, TITLES_LEFT_OUT
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_losses import database, read_again
from tests.support.converters import Converters

RULES = {"a.gpkg": ("GPKG", 3), "a.sqlite": ("SQLite", 3), "a.fgb": ("FlatGeobuf", 2), "a.gdb": ("OpenFileGDB", 2)}
"""By file: the driver that writes it, and how many rules it keeps of those of a GeoPackage."""
PLACES = ("東京都", "Zürich")


async def test_texts_are_not_cut_at_the_width_that_their_column_declares(either: Pipeline, tmp_path: Path) -> None:
    """SQLite stores longer ones, and GeoPackage counts characters, but drivers of other formats cut bytes."""
    path = await database(either, tmp_path, ["place TEXT(3)", "n INTEGER"], *((place, 1) for place in PLACES))
    done = await either.to("MapInfo", path)
    assert await read_again(either, done) == {"id": 0, "place": PLACES[0], "n": 1}
    assert done.output.warnings == ()


async def test_values_may_repeat_in_columns_that_do_not_allow_it(
    either: Pipeline, converters: Converters, tmp_path: Path
) -> None:
    """FlatGeobuf only says that they are unique, and a column may have the name of another, ignoring case."""
    path = await database(either, tmp_path, ["code TEXT", "kode TEXT"], ("first", "a"), ("other", "b"))
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute(f'CREATE UNIQUE INDEX i ON "{table}" (code)')
    directory = converters.new_directory()
    (directory / "in.gpkg").write_bytes(path.read_bytes())
    assert await converters.ogr2ogr(directory, "-f", "FlatGeobuf", "a.fgb", "in.gpkg")
    file = directory / "a.fgb"
    file.write_bytes(file.read_bytes().replace(b"other", b"first").replace(b"kode", b"Code"))
    done = await either.to("Csv", file)
    assert [(row["code"], row["Code2"]) for row in readers.table(done.path)] == [("first", "a"), ("first", "b")]
    renamed = "The column 'Code' has the name of another, ignoring case, and became 'Code2'."
    assert set(done.output.warnings) == {RULES_LEFT_OUT.format(count=1), renamed}


@pytest.mark.parametrize("name", RULES)
async def test_rules_for_values_of_columns_are_told(
    either: Pipeline, converters: Converters, tmp_path: Path, name: str
) -> None:
    """NOT NULL, a default and UNIQUE, as far as a format declares them."""
    path = await database(either, tmp_path, ["c TEXT NOT NULL DEFAULT 'x'", "e TEXT"], ("a", "b"))
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute(f'CREATE UNIQUE INDEX i ON "{table}" (e)')
    directory = converters.new_directory()
    (directory / "in.gpkg").write_bytes(path.read_bytes())
    driver, count = RULES[name]
    assert await converters.ogr2ogr(directory, "-f", driver, name, "in.gpkg")
    done = await either.to("Csv", packed(directory / name))
    assert [(row["c"], row["e"]) for row in readers.table(done.path)] == [("a", "b")]
    assert done.output.warnings == (RULES_LEFT_OUT.format(count=count),)


LIMITS = (("size", "range", None, "From 1 to 9"), ("code", "glob", "[A-Z]*", ""), ("kind", "enum", "a", None))
"""Constraints that say which values there may be: the name, the type, the value and the description of each."""


async def test_conditions_of_geopackages_are_told(either: Pipeline, tmp_path: Path) -> None:
    """But not those about types and widths, which some programs give every column; a default value counts once."""
    type_of_e = "CHECK((typeof(e) = 'text' or typeof(e) = 'null') and not length(e) > 50)"
    columns = ["c TEXT check (c <> 'z')", f"e TEXT {type_of_e}", "checks TEXT DEFAULT 'check (a) or CHECK((b'"]
    path = await database(either, tmp_path, columns, ("a", "b", "c"))
    with edited(path) as connection:
        connection.execute(
            "CREATE TABLE gpkg_data_column_constraints (constraint_name TEXT, constraint_type TEXT, value TEXT, "
            "min NUMERIC, min_is_inclusive BOOLEAN, max NUMERIC, max_is_inclusive BOOLEAN, description TEXT)"
        )
        connection.executemany(
            "INSERT INTO gpkg_data_column_constraints (constraint_name, constraint_type, value, description) "
            "VALUES (?, ?, ?, ?)",
            [*LIMITS, ("surface", "enum", "1", "Asphalt")],
        )
    warnings = (await either.to("Csv", path)).output.warnings
    assert set(warnings) == {RULES_LEFT_OUT.format(count=2 + len(LIMITS)), CODES_LEFT_OUT.format(count=1)}


async def test_columns_of_parquet_that_may_not_miss_values_are_told(either: Pipeline, tmp_path: Path) -> None:
    """As programs that know it say of ids."""
    fields = [pa.field("a", pa.string(), nullable=False), pa.field("b", pa.int64(), nullable=False)]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table([["x"], [1], ["y"]], pa.schema([*fields, pa.field("c", pa.string())])), path)
    assert (await either.to("GeoPackage", path)).output.warnings == (RULES_LEFT_OUT.format(count=2),)


async def test_what_parquet_says_of_itself_is_told(either: Pipeline, tmp_path: Path) -> None:
    """Not what programs say for themselves."""
    about = {"description": "Color of the well", "PARQUET:field_id": "1"}
    pandas = json.dumps({"attributes": {"source": "a survey"}, "index_columns": [], "creator": {"library": "pyarrow"}})
    fields = [pa.field("a", pa.string(), metadata=about), pa.field("b", pa.int64(), metadata={"title": " "})]
    path = tmp_path / "a.parquet"
    schema = pa.schema(fields, metadata={"Title": "Wells", "writer": "a program", "pandas": pandas})
    pq.write_table(pa.table([["x"], [1]], schema), path)
    told = (TITLES_LEFT_OUT.format(count=1), DESCRIPTIONS_LEFT_OUT.format(count=2))
    assert (await either.to("Csv", path)).output.warnings == told


METADATA = {
    "a.shp.xml": "<metadata><idAbs>Wells of the county</idAbs><idPurp>\n</idPurp></metadata>",
    "A.SHP.XML": "<metadata><abstract>REQUIRED: A brief summary.</abstract><purpose>Planning</purpose></metadata>",
    "a.qmd": "<qgis><abstract>Wells</abstract></qgis>",
}
"""By the name of a file beside a shapefile: what it holds, of which one text is a user's."""


@pytest.mark.parametrize("name", METADATA)
async def test_metadata_beside_a_shapefile_is_told(pipeline: Pipeline, tmp_path: Path, name: str) -> None:
    """It was ignored."""
    path = (await pipeline.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, n=1)]))).path
    assert (await pipeline.to("GeoPackage", path)).output.warnings == ()
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, METADATA[name])
    assert (await pipeline.to("GeoPackage", path)).output.warnings == (DESCRIPTIONS_LEFT_OUT.format(count=1),)


SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:complexType name="f"><xs:sequence>
<xs:element name="t"><xs:simpleType><xs:restriction base="xs:string"><xs:maxLength value="5"/></xs:restriction>
</xs:simpleType></xs:element>{}</xs:sequence></xs:complexType></xs:schema>"""
LIST_OF_VALUES = """<xs:element name="kind"><xs:simpleType><xs:restriction base="xs:string">
<xs:enumeration value="a"/><xs:enumeration value="b"/></xs:restriction></xs:simpleType></xs:element>"""


@pytest.mark.parametrize(("source", "rules", "told"), [("Gml", 0, 0), ("Gml", 1, 1), ("Kml", 1, 0)])
async def test_rules_in_a_schema_beside_gml_are_told(
    pipeline: Pipeline, tmp_path: Path, source: str, rules: int, told: int
) -> None:
    """Not widths, which programs declare for all texts, nor the schemas of formats, as beside KML."""
    made = await pipeline.to(source, write_geojson(tmp_path / "a.geojson", [point(1, 2, t="x", kind="a")]))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.write(made.path, f"a.{source.lower()}")
        archive.writestr("a.xsd", SCHEMA.format(LIST_OF_VALUES * rules))
    done = await pipeline.to("GeoPackage", tmp_path / "b.zip")
    rules_told = [warning for warning in done.output.warnings if warning.startswith("Rules")]
    assert rules_told == [RULES_LEFT_OUT.format(count=1)] * told


def packed(path: Path) -> Path:
    """A file itself, or a folder in a ZIP."""
    if path.is_file():
        return path
    with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
        for file in path.iterdir():
            archive.write(file, f"{path.name}/{file.name}")
    return path.with_suffix(".zip")
