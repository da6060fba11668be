"""What a user wrote about a whole file, which no target keeps, is told in one warning."""

import base64
import subprocess
import zipfile
from pathlib import Path

import pytest

from service.errors import Rejection
from service.formats.flatgeobuf_header import said_in_header
from service.formats.table.databases import RULES_LEFT_OUT, TITLES_LEFT_OUT
from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_losses import database

POINT = '<gml:Point srsName="EPSG:4326"><gml:pos>1 2</gml:pos></gml:Point>'
SAID = "<name>Tour</name><desc>Three days</desc><author><name>Eva</name></author><keywords>a, b</keywords>"
FILES = {
    "a.gpx": (
        (
            f'<gpx version="1.1" creator="c" xmlns="http://www.topografix.com/GPX/1/1"><metadata>{SAID}</metadata>'
            '<wpt lat="1" lon="2"><name>n</name></wpt></gpx>'
        ),
        "The metadata of the file (name, description, author, copyright or keywords) was left out.",
    ),
    "a.kml": (
        (
            '<kml xmlns="http://www.opengis.net/kml/2.2"><Document><name>Tour</name><description>3 days</description>'
            "<Folder><description>Day 1</description><Placemark><name>n</name><description>Start</description>"
            "<Point><coordinates>2,1</coordinates></Point></Placemark></Folder></Document></kml>"
        ),
        "Descriptions and authors of documents and folders (2) were left out.",
    ),
    "a.gml": (
        (
            '<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/" xmlns:gml="http://www.opengis.net/gml">'
            "<gml:description>Three days</gml:description><gml:name>Tour</gml:name><gml:featureMember><ogr:a><ogr:g>"
            f"{POINT}</ogr:g><ogr:name>n</ogr:name></ogr:a></gml:featureMember></ogr:FeatureCollection>"
        ),
        "The name or description of the whole collection was left out.",
    ),
}
"""Files, and what is told of them."""


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("target", ["GeoJson", "GeoPackage"])
async def test_what_a_file_says_of_itself_is_told(either: Pipeline, tmp_path: Path, name: str, target: str) -> None:
    """What its features say is kept."""
    text, told = FILES[name]
    path = tmp_path / name
    path.write_text(text)
    done = await either.to(target, path)
    assert told in done.output.warnings
    if target == "GeoJson":
        (found,) = (row["properties"] for row in readers.geojson(done.path))
        assert isinstance(found, dict)
        assert "n" in found.values()


async def test_names_of_features_are_not_said_to_be_left_out(pipeline: Pipeline, tmp_path: Path) -> None:
    """Whatever the element is called that holds a feature in its collection."""
    path = tmp_path / "a.gml"
    path.write_text(
        FILES["a.gml"][0]
        .replace("<gml:description>Three days</gml:description><gml:name>Tour</gml:name>", "")
        .replace("gml:featureMember", "ogr:topographicMember")
        .replace("ogr:name", "gml:name")
    )
    done = await pipeline.to("GeoPackage", path)
    assert done.output.warnings == ()


METADATA = "CREATE TABLE gpkg_metadata (id INTEGER PRIMARY KEY, md_standard_uri TEXT, mime_type TEXT, metadata TEXT)"
SAID_BY = {
    "a user": ("Wells of the county", "", "", 1),
    "nobody": ("", "", "", 0),
    "GDAL": ("", "http://gdal.org", "<GDALMultiDomainMetadata/>", 0),
    "QGIS": ("", "http://mrcc.com/qgis.dtd", "<qgis><title>a</title><abstract></abstract></qgis>", 0),
    "a user of QGIS": ("", "http://mrcc.com/qgis.dtd", "<qgis><abstract>Wells</abstract></qgis>", 1),
    "a catalogue": ("Wells", "http://www.isotc211.org/2005/gmd", "<MD_Metadata/>", 2),
}
"""The description of a layer, the standard of a document of metadata and the document, and how many are told."""


@pytest.mark.parametrize("author", SAID_BY)
async def test_what_a_geopackage_says_of_itself_is_told(either: Pipeline, tmp_path: Path, author: str) -> None:
    """But not what programs write into every one."""
    description, standard, document, told = SAID_BY[author]
    path = await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"))
    with edited(path) as connection:
        connection.execute("UPDATE gpkg_contents SET description = ?", (description,))
        if standard:
            connection.execute(METADATA)
            connection.execute("INSERT INTO gpkg_metadata VALUES (1, ?, 'text/xml', ?)", (standard, document))
    warnings = (await either.to("GeoJson", path)).output.warnings
    assert warnings == ((f"Descriptions of the file or its layers ({told}) were left out.",) if told else ())


@pytest.mark.parametrize(
    ("epoch", "used", "is_told"), [(2030.5, True, True), (2030.5, False, False), (None, True, False)]
)
async def test_the_epoch_of_coordinates_is_told(
    either: Pipeline, tmp_path: Path, epoch: float | None, *, used: bool, is_told: bool
) -> None:
    """If a layer is in a system with one."""
    path = (await either.to("GeoPackage", write_geojson(tmp_path / "a.geojson", [point(1, 2)]))).path
    with edited(path) as connection:
        connection.execute("ALTER TABLE gpkg_spatial_ref_sys ADD COLUMN epoch DOUBLE")
        connection.execute("UPDATE gpkg_spatial_ref_sys SET epoch = ? WHERE (srs_id = 4326) = ?", (epoch, used))
    warnings = (await either.to("FlatGeobuf", path)).output.warnings
    assert [told.startswith("The epoch of the coordinates") for told in warnings] == [True] * is_told


COLUMNS_SAID = {
    "c": ("c", "Color", None),
    "e": ("e", "e", ""),
    "alias": ("Alias of it", None, None),
    "said": (None, None, "Said of it"),
}
"""By column: its alias (name), its title and its description."""


async def test_titles_of_columns_are_told(either: Pipeline, tmp_path: Path) -> None:
    """But not those that repeat the name of the column."""
    path = await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"))
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute(
            "CREATE TABLE IF NOT EXISTS gpkg_data_columns "
            "(table_name, column_name, name, title, description, mime_type, constraint_name)"
        )
        rows = [(table, name, *said) for name, said in COLUMNS_SAID.items()]
        connection.executemany(
            "INSERT INTO gpkg_data_columns (table_name, column_name, name, title, description) VALUES (?, ?, ?, ?, ?)",
            rows,
        )
    warnings = (await either.to("GeoJson", path)).output.warnings
    assert warnings == ("Titles of columns (3) were left out; the columns keep their names.",)


@pytest.mark.parametrize(("identifier", "told"), [("Wells of the county", 1), ("main.{}", 0), ("", 0), (None, 0)])
async def test_titles_of_layers_are_told(either: Pipeline, tmp_path: Path, identifier: str | None, told: int) -> None:
    """But not those that repeat the name of the table, perhaps behind that of the database."""
    path = await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"))
    with edited(path) as connection:
        (table,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        said = None if identifier is None else identifier.format(table)
        connection.execute("UPDATE gpkg_contents SET identifier = ?", (said,))
    warnings = (await either.to("GeoJson", path)).output.warnings
    assert warnings == (("Descriptions of the file or its layers (1) were left out.",) if told else ())


async def test_geometries_of_tables_listed_as_attributes_are_told(either: Pipeline, tmp_path: Path) -> None:
    """The driver reads no geometry of such a table, although another table of the file names its column."""
    path = await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"))
    with edited(path) as connection:
        connection.execute("UPDATE gpkg_contents SET data_type = 'attributes'")
    warnings = (await either.to("GeoJson", path)).output.warnings
    (told,) = (warning for warning in warnings if "gpkg_contents" in warning)
    assert told.startswith("The geometries of 1 table were not read")


ADD_TILES = "INSERT INTO gpkg_contents (table_name, data_type, identifier) VALUES ('tl', 'tiles', 'tl')"


async def test_tiles_of_a_geopackage_are_told(either: Pipeline, tmp_path: Path) -> None:
    path = await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"))
    with edited(path) as connection:
        connection.execute(ADD_TILES)
    done = await either.to("GeoJson", path)
    assert done.output.warnings == ("Rasters and tiles (1 table) were left out.",)


async def test_a_geopackage_of_tiles_alone_or_nothing_is_refused_as_such(either: Pipeline, tmp_path: Path) -> None:
    path = await database(either, tmp_path, ["c TEXT", "e TEXT"], ("a", "x"))
    with edited(path) as connection:
        (name,) = connection.execute("SELECT table_name FROM gpkg_contents").fetchone()
        connection.execute("DELETE FROM gpkg_contents")
        connection.execute("DELETE FROM gpkg_geometry_columns")
        connection.execute(ADD_TILES)
    with pytest.raises(Rejection, match="holds only rasters or tiles"):
        await either.to("GeoJson", path)
    with edited(path) as connection:
        connection.execute("DELETE FROM gpkg_contents")
        connection.execute(f'DROP TABLE "{name}"')
    with pytest.raises(Rejection, match="holds no layers"):
        await either.to("GeoJson", path)


KINDS = """
    CREATE TABLE gpkg_data_columns (
        table_name TEXT, column_name TEXT, name TEXT, title TEXT, description TEXT, mime_type TEXT, constraint_name TEXT
    );
    CREATE TABLE gpkg_data_column_constraints (
        constraint_name TEXT, constraint_type TEXT, value TEXT, min NUMERIC, min_is_inclusive BOOLEAN, max NUMERIC,
        max_is_inclusive BOOLEAN, description TEXT
    );
    INSERT INTO gpkg_extensions VALUES
        ('gpkg_data_columns', NULL, 'gpkg_schema', 'http://www.geopackage.org/spec121/#extension_schema', 'read-write');
    INSERT INTO gpkg_extensions VALUES (
        'gpkg_data_column_constraints', NULL, 'gpkg_schema',
        'http://www.geopackage.org/spec121/#extension_schema', 'read-write'
    );
    INSERT INTO gpkg_data_columns SELECT table_name, 'n', NULL, NULL, NULL, NULL, 'kinds' FROM gpkg_contents;
    INSERT INTO gpkg_data_column_constraints VALUES ('kinds', 'enum', '1', NULL, NULL, NULL, NULL, '{0}');
    INSERT INTO gpkg_data_column_constraints VALUES ('kinds', 'enum', '2', NULL, NULL, NULL, NULL, '{0}');
"""
"""Constraints of the column `n`."""


@pytest.mark.parametrize("is_geodatabase", [True, False])
async def test_lists_of_what_codes_stand_for_are_told(
    either: Pipeline, tmp_path: Path, *, is_geodatabase: bool
) -> None:
    """Once for each list, whatever number of codes it has."""
    path = await database(either, tmp_path, ["n MEDIUMINT", "e TEXT"], (1, "x"))
    with edited(path) as connection:
        connection.executescript(KINDS.format("Road"))
    if is_geodatabase:
        path = geodatabase(path, tmp_path)
    done = await either.to("Csv", path)
    assert [row["n"] for row in readers.table(done.path)] == ["1"]
    told = "Lists of what codes in columns stand for (1), such as domains, were left out; the columns keep their codes."
    assert done.output.warnings == (told,)


async def test_lists_that_give_codes_no_meaning_are_told_as_rules(pipeline: Pipeline, tmp_path: Path) -> None:
    """They only say which values there may be."""
    path = await database(pipeline, tmp_path, ["n MEDIUMINT", "e TEXT"], (1, "x"))
    with edited(path) as connection:
        connection.executescript(KINDS.format(""))
    assert (await pipeline.to("GeoJson", path)).output.warnings == (RULES_LEFT_OUT.format(count=1),)


RELATED = """
    CREATE TABLE sizes (id INTEGER PRIMARY KEY, size TEXT);
    INSERT INTO sizes VALUES (1, 'large');
    CREATE TABLE map (base_id INTEGER NOT NULL, related_id INTEGER NOT NULL);
    INSERT INTO map VALUES (1, 1);
    CREATE TABLE gpkgext_relations (
        id INTEGER PRIMARY KEY, base_table_name TEXT, base_primary_column TEXT, related_table_name TEXT,
        related_primary_column TEXT, relation_name TEXT, mapping_table_name TEXT
    );
    INSERT INTO gpkgext_relations SELECT 1, table_name, 'fid', 'sizes', 'id', 'attributes', 'map' FROM gpkg_contents;
    INSERT INTO gpkg_extensions VALUES
        ('gpkgext_relations', NULL, 'related_tables', 'http://www.geopackage.org/18-000.html', 'read-write'),
        ('map', NULL, 'related_tables', 'http://www.geopackage.org/18-000.html', 'read-write');
    INSERT INTO gpkg_contents (table_name, data_type, identifier) VALUES ('sizes', 'attributes', 'sizes');
    CREATE TABLE android_metadata (locale TEXT);
    CREATE TABLE qgis_projects (name TEXT PRIMARY KEY, metadata BLOB, content BLOB);
"""
"""A table, which of its rows belong to those of the layer, and tables of programs."""


async def test_relations_and_tables_that_are_not_listed_are_told(either: Pipeline, tmp_path: Path) -> None:
    """A driver reads tables that are not listed only if no other table without geometry is."""
    path = await database(either, tmp_path, ["n MEDIUMINT", "e TEXT"], (1, "x"))
    with edited(path) as connection:
        connection.executescript(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO notes VALUES (1, 'a')"
        )
    assert [w for w in (await either.to("SpatiaLite", path)).output.warnings if "left out" in w] == []
    with edited(path) as connection:
        connection.executescript(RELATED)
    relations, unlisted, *_ = (await either.to("SpatiaLite", path)).output.warnings  # 3.10 reads the table between
    assert relations == "Relations between tables (1) were left out."
    assert unlisted.startswith("Tables that gpkg_contents does not list (1) were left out.")


async def test_layers_whose_geometries_are_in_no_known_column_are_told(either: Pipeline, tmp_path: Path) -> None:
    """They were missing without a word, and the file was called damaged if there was no other."""
    path = await database(either, tmp_path, ["n MEDIUMINT", "e TEXT"], (1, "x"))
    with edited(path) as connection:
        connection.executescript(
            "CREATE TABLE other (id INTEGER PRIMARY KEY, geom BLOB, n TEXT); INSERT INTO other (n) VALUES ('x');"
            "INSERT INTO gpkg_contents (table_name, data_type, identifier) VALUES ('other', 'features', 'other')"
        )
    [sentence] = [told for told in (await either.to("Csv", path)).output.warnings if "left out" in told]
    assert sentence == (
        "Layers of which gpkg_geometry_columns has no row (1) were left out. Add their rows to gpkg_geometry_columns, "
        "and send the file again."
    )
    with edited(path) as connection:
        connection.execute("DELETE FROM gpkg_geometry_columns")
    with pytest.raises(Rejection, match=r"not say which columns have the geometries of its layers\. Add their rows"):
        await either.to("Csv", path)


DESCRIBED_BY_ESRI = {
    b"<Name>n</Name>\n<AliasName>Depth in m</AliasName>": "Titles of columns (1) were left out",
    b"<Name>n</Name><AliasName>n</AliasName>": "",
    b"<Name>n</Name><AliasName></AliasName>": "",
    b"<idAbs>All wells</idAbs>": "Descriptions of the file or its layers (1) were left out.",
    b"<DERelationshipClassInfo xsi:type=''/>": "Relations between tables (1) were left out.",
}
"""What ArcGIS writes into the descriptions of a File Geodatabase, and what is told of it."""


@pytest.mark.parametrize("element", DESCRIBED_BY_ESRI)
async def test_titles_and_relations_of_a_geodatabase_are_told(
    pipeline: Pipeline, tmp_path: Path, element: bytes
) -> None:
    path = await database(pipeline, tmp_path, ["n MEDIUMINT", "e TEXT"], (1, "x"))
    with zipfile.ZipFile(geodatabase(path, tmp_path)) as packed, zipfile.ZipFile(tmp_path / "told.zip", "w") as told:
        for name in packed.namelist():
            content = packed.read(name)
            if name.endswith("a00000004.gdbtable"):
                at = content.index(b"<Name>n</Name>")
                end = content.index(b"</GPFieldInfoEx>", at)
                content = content[:at] + element.ljust(end - at) + content[end:]
            told.writestr(name, content)
    warnings = (await pipeline.to("Csv", tmp_path / "told.zip")).output.warnings
    assert len(warnings) == bool(DESCRIBED_BY_ESRI[element])
    assert all(warning.startswith(DESCRIBED_BY_ESRI[element]) for warning in warnings)


@pytest.mark.parametrize(("title", "is_told"), [("Roads & ways", True), ("roads", False)])
async def test_titles_of_layers_of_a_geodatabase_are_told(
    pipeline: Pipeline, tmp_path: Path, title: str, *, is_told: bool
) -> None:
    """Programs show them in place of the names, and they were left out without a word."""
    path = await database(pipeline, tmp_path, ["n MEDIUMINT", "e TEXT"], (1, "x"))
    titled = geodatabase(path, tmp_path, "-nln", "roads", "-lco", f"LAYER_ALIAS={title}")
    told = "Titles of layers (aliases, 1) were left out; the layers keep their names."
    assert (await pipeline.to("Csv", titled)).output.warnings == ((told,) if is_told else ())


def geodatabase(path: Path, directory: Path, *options: str) -> Path:
    """The GeoPackage at `path` as a zipped File Geodatabase with its domains."""
    folder = directory / "a.gdb"
    subprocess.run(["ogr2ogr", "-q", "-f", "OpenFileGDB", *options, folder, path], check=True)
    with zipfile.ZipFile(directory / "gdb.zip", "w") as packed:
        for file in folder.iterdir():
            packed.write(file, f"a.gdb/{file.name}")
    return directory / "gdb.zip"


def with_property(path: Path, member: str, element: bytes) -> Path:
    """The workbook at `path` with an element in its properties."""
    copy = path.with_name(f"told{path.suffix}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for info in old.infolist():
            if info.filename != member:
                new.writestr(info, old.read(info))
        new.writestr(member, b"<p><dc:creator>x</dc:creator><dc:title></dc:title><dc:subject/>%b</p>" % element)
    return copy


PROPERTIES = {
    b"<dc:title>Wells</dc:title>": True,
    b"<dc:description>\n All wells</dc:description>": True,
    b"<dc:title> </dc:title>": False,
    b"<dc:creator>Eva</dc:creator>": False,
}
"""Elements, and whether they are told."""


@pytest.mark.parametrize("element", PROPERTIES)
@pytest.mark.parametrize(("target", "member"), [("Xlsx", "docProps/core.xml"), ("Ods", "meta.xml")])
async def test_what_a_user_wrote_into_the_properties_of_a_workbook_is_told(
    pipeline: Pipeline, tmp_path: Path, target: str, member: str, element: bytes
) -> None:
    """But not what programs write into every one."""
    table = tmp_path / "a.csv"
    table.write_text("name,number\na,1\n", encoding="utf-8")
    made = (await pipeline.to(target, table)).path
    assert (await pipeline.to("Csv", made)).output.warnings == ()
    warnings = (await pipeline.to("Csv", with_property(made, member, element))).output.warnings
    assert any("properties of the workbook" in warning for warning in warnings) == PROPERTIES[element], warnings


DESCRIBED = (
    "W@lmpW@lmnyZ`_IC;$Ke000000015UC;$im3;+cH00000000005C9wi1^@s66aW|i9smFU00961TmS$7GynhqC;$Ke8~^|S5C8xG0RR9100000000"
    "000RR91WB>pF0RR91bN~PV0RR91KmY&$1ONa400000001ID00000002oq00000001ID00000002oq0ssI2Z887=000gE5C8}O2LJ#7000aC4gdfE00"
    "0052mk;8000000RR91ZU6uPOaK4?5C8xG000002mlNK1ONyC2mk;88~^|S1ONa41^@s6000F5000002mlBG000C42mk;81ONa40ssI200000001ID0"
    "0000002oq"
)
"""A FlatGeobuf of a point, with a title and a description, as GDAL 3.12 writes it."""
DECLARED = (
    "W@lmpW@lmn+yDRoAOHXW000007yujq2mlNK1poj500000000mG6aWSQ7ytkO00961NB{r;8~^|S3;+NC0RR91000000ssI2Z~y=RNB{r;1ONa400"
    "000008hm000000000$00000008hm000000000$000000RR91bO06r5C8}O1poj5000aC000001^@>D761SM01E&C2mk;8000000RR91VgL>R6aWY"
    "S2LKEJ000mG4gdfE0000B8~^|S2mk;8000003IG5APGN0jAa7<MX><Sp0RR91VE_OCQ~&?~5C8xG000002mlNK1ONyC2mk;8Bme*a1ONa44gdfE0"
    "0031004La009610C@la2mlBG000C42mk;81ONa40ssI200000008hm000000000$"
)
"""The same with a column that has a title, and one that may not be null and is unique, as GDAL 3.6 writes it."""


async def test_what_the_header_of_a_flatgeobuf_says_is_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Nothing is told of a header without such texts, or one that is damaged."""
    path = tmp_path / "a.fgb"
    content = base64.b85decode(DESCRIBED)
    path.write_bytes(content)
    made = await pipeline.to("Csv", path, source_epsg=4326)
    assert made.output.warnings == ("Metadata of the file (title, description) was left out.",)
    path.write_bytes(base64.b85decode(DECLARED))
    declared = (await pipeline.to("Csv", path, source_epsg=4326)).output.warnings
    assert declared == (TITLES_LEFT_OUT.format(count=1), RULES_LEFT_OUT.format(count=2))
    plain = await pipeline.to("FlatGeobuf", made.path, source_epsg=4326)
    assert (await pipeline.to("Csv", plain.path)).output.warnings == ()
    for at in range(12, 200):
        path.write_bytes(content[:at] + bytes([255]) * 2 + content[at + 2 :])
        assert {*said_in_header(path).texts} <= {"title", "description", "metadata"}
