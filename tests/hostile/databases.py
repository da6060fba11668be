"""SQLite in three formats: tables and views that read files, run forever or grow forever, and odd schemas."""

# ruff: noqa: S608 -- SQL put together from strings is what these files are made of

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing

from tests.hostile.bait import Bait
from tests.hostile.case import LIMIT, REFUSED, Case, filled

CONTENTS = """
    CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY, organization TEXT NOT NULL,
        organization_coordsys_id INTEGER NOT NULL, definition TEXT NOT NULL, description TEXT);
    CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT NOT NULL, identifier TEXT,
        description TEXT DEFAULT '', last_change DATETIME NOT NULL DEFAULT '2020-01-01T00:00:00.000Z', min_x DOUBLE,
        min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER);
    CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL, geometry_type_name TEXT,
        srs_id INTEGER NOT NULL, z TINYINT NOT NULL, m TINYINT NOT NULL);
    INSERT INTO gpkg_spatial_ref_sys VALUES ('WGS 84', 4326, 'EPSG', 4326, 'GEOGCS["WGS 84",DATUM["WGS_1984",'
        || 'SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]', '');
"""
ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS fid, x AS a FROM n"
NESTED_COLLECTIONS = b"GP\0\1\xe6\x10\0\0" + bytes.fromhex("010700000001000000") * 30_000
HUGE_COUNT = b"GP\0\1\xe6\x10\0\0" + bytes.fromhex("0102000000ffffffff")


def geopackage(statements: str, tables: Iterable[str] = ("t",), kind: str = "attributes") -> Callable[[Bait], bytes]:
    """Build a GeoPackage with `tables` registered as layers, however they were created."""

    def build(bait: Bait) -> bytes:
        with _opened() as database:
            database.execute("PRAGMA application_id = 1196444487")
            database.execute("PRAGMA user_version = 10200")
            database.executescript(CONTENTS + filled(statements, bait))
            rows = [(filled(table, bait), kind) for table in tables]
            database.executemany(
                "INSERT INTO gpkg_contents (table_name, data_type, identifier, srs_id) VALUES (?1, ?2, ?1, 4326)", rows
            )
            if kind == "features":
                database.executemany(
                    "INSERT INTO gpkg_geometry_columns VALUES (?, 'geom', 'GEOMETRY', 4326, 0, 0)",
                    [row[:1] for row in rows],
                )
            return database.serialize()

    return build


def database(statements: str, declared: str = "") -> Callable[[Bait], bytes]:
    """Build a database; `declared` is the SQL of a table that this host's SQLite cannot create."""

    def build(bait: Bait) -> bytes:
        with _opened() as made:
            made.executescript(filled(statements, bait))
            if declared:
                made.execute("PRAGMA writable_schema = ON")
                made.execute(
                    "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('table', 'v', 'v', 0, ?)",
                    (filled(declared, bait),),
                )
                made.commit()
            return made.serialize()

    return build


def virtual(declared: str) -> Callable[[Bait], bytes]:
    """Build a GeoPackage with a virtual table that SQLite can create only where its module is installed."""

    def build(bait: Bait) -> bytes:
        with _opened() as made:
            made.deserialize(
                geopackage("CREATE TABLE t (fid INTEGER PRIMARY KEY); INSERT INTO t VALUES (1);", ("t", "v"))(bait)
            )
            made.execute("PRAGMA writable_schema = ON")
            made.execute(
                "INSERT INTO sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('table', 'v', 'v', 0, ?)",
                (filled(declared, bait),),
            )
            made.commit()
            return made.serialize()

    return build


def _opened() -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(":memory:"))


def _geometry(blob: bytes) -> Callable[[Bait], bytes]:
    return geopackage(
        f"CREATE TABLE t (fid INTEGER PRIMARY KEY, geom BLOB); INSERT INTO t VALUES (1, X'{blob.hex()}');",
        kind="features",
    )


MODULES = {
    "VirtualText": "CREATE VIRTUAL TABLE v USING VirtualText('{csv}', 'UTF-8', 1, POINT, DOUBLEQUOTE, ',')",
    "VirtualDbf": "CREATE VIRTUAL TABLE v USING VirtualDbf('{csv}', 'UTF-8')",
    "VirtualGeoJSON": "CREATE VIRTUAL TABLE v USING VirtualGeoJSON('{geojson}')",
    "VirtualOGR of a file": "CREATE VIRTUAL TABLE v USING VirtualOGR('{csv}')",
    "VirtualOGR of an address": "CREATE VIRTUAL TABLE v USING VirtualOGR('/vsicurl/{url}/a.csv')",
    "csv": "CREATE VIRTUAL TABLE v USING csv(filename='{csv}')",
    "dbstat": "CREATE VIRTUAL TABLE v USING dbstat",
    "fsdir": "CREATE VIRTUAL TABLE v USING fsdir('{directory}')",
}
READERS = {
    "ogr_datasource_load_layers": "SELECT ogr_datasource_load_layers('{csv}') AS a",
    "ogr_geocode": "SELECT ogr_geocode('{url}') AS a",
    "load_extension": "SELECT load_extension('{csv}') AS a",
    "readfile": "SELECT readfile('{csv}') AS a",
    "BlobFromFile": "SELECT BlobFromFile('{csv}') AS a",
    "XB_LoadXML": "SELECT XB_LoadXML('{url}') AS a",
    "writefile": "SELECT writefile('{directory}/{slip}', 'x') AS a",
    "gdal_get_pixel_value": "SELECT gdal_get_pixel_value('{csv}', 1, 'georef', 1, 1) AS a",
}
NULLS = ("gdal_get_pixel_value",)
"""The functions of which later versions of GDAL make a missing value; others refuse them."""
VIEW = "CREATE TABLE d (fid INTEGER PRIMARY KEY, v TEXT); INSERT INTO d VALUES (1, 'x'); CREATE VIEW t AS "

CASES = {
    **{f"GeoPackage with {name}": Case("a.gpkg", virtual(sql)) for name, sql in MODULES.items()},
    **{
        f"SQLite with {name}": Case("a.sqlite", database("CREATE TABLE d (a); INSERT INTO d VALUES (1);", sql))
        for name, sql in MODULES.items()
    },
    **{
        f"GeoPackage view with {name}": Case("a.gpkg", geopackage(VIEW + sql), None if name in NULLS else REFUSED)
        for name, sql in READERS.items()
    },
    "GeoPackage view that attaches": Case("a.gpkg", geopackage(VIEW + "SELECT * FROM pragma_database_list")),
    "GeoPackage trigger": Case(
        "a.gpkg",
        geopackage(
            "CREATE TABLE t (fid INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, 'x'); "
            "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT load_extension('{csv}'); END;"
        ),
    ),
    "GeoPackage view without end": Case("a.gpkg", geopackage(VIEW + ENDLESS), LIMIT, {"outputFormat": "Csv"}),
    "GeoPackage view of random bytes": Case(
        "a.gpkg", geopackage(VIEW + "SELECT 1 AS fid, hex(randomblob(499999999)) AS v"), REFUSED
    ),
    "GeoPackage view of zeros": Case("a.gpkg", geopackage(VIEW + "SELECT 1 AS fid, zeroblob(999999999) AS v"), REFUSED),
    "SQLite column made of zeros": Case(
        "a.sqlite",
        database("CREATE TABLE t (a, b AS (hex(zeroblob(499999999)))); INSERT INTO t (a) VALUES (1), (2), (3);"),
        REFUSED,
    ),
    "SQLite view only": Case("a.sqlite", database(f"CREATE VIEW t AS {ENDLESS}"), "no data tables"),
    "SQLite with tables that are called like options": Case(
        "a.sqlite",
        database('CREATE TABLE "-sql" (a); CREATE TABLE "@{csv}" (a); CREATE TABLE "a\n-progress" (a)'),
        "no data tables",
    ),
    "SQLite with 3,000 tables": Case(
        "a.sqlite", database("".join(f"CREATE TABLE t{n} (a);" for n in range(3000))), "more layers|too many layers"
    ),
    "SQLite with a schema that is no SQL": Case("a.sqlite", database("", "CREATE TABLE v (a, ((((")),
    "SQLite with a table called as another file": Case(
        "a.sqlite",
        database('CREATE TABLE "../../{slip}" (a); INSERT INTO "../../{slip}" VALUES (1)'),
        "",
        {"outputFormat": "Csv"},
    ),
    "GeoPackage with a layer called as another file": Case(
        "a.gpkg",
        geopackage(
            'CREATE TABLE "../../{slip}" (fid INTEGER PRIMARY KEY, v); INSERT INTO "../../{slip}" VALUES (1, 2);',
            ["../../{slip}"],
        ),
        None,
        {"outputFormat": "Csv"},
    ),
    "GeoPackage with a layer called as an absolute path": Case(
        "a.gpkg",
        geopackage(
            'CREATE TABLE "{directory}/{slip}" (fid INTEGER PRIMARY KEY, v); '
            'INSERT INTO "{directory}/{slip}" VALUES (1, 2);',
            ["{directory}/{slip}"],
        ),
        None,
        {"outputFormat": "Csv"},
    ),
    "GeoPackage geometry in 30,000 collections": Case("a.gpkg", _geometry(NESTED_COLLECTIONS)),
    "GeoPackage geometry with four billion points": Case("a.gpkg", _geometry(HUGE_COUNT)),
    "GeoPackage geometry of one byte": Case("a.gpkg", _geometry(b"G")),
    "GeoPackage geometry without a body": Case("a.gpkg", _geometry(b"GP\0\1\xe6\x10\0\0")),
    "GeoPackage system with a grid": Case(
        "a.gpkg",
        geopackage(
            "CREATE TABLE t (fid INTEGER PRIMARY KEY, geom BLOB); "
            "UPDATE gpkg_spatial_ref_sys SET organization = 'none', "
            "definition = '+proj=longlat +nadgrids={csv} +no_defs';"
            "INSERT INTO t VALUES (1, X'47500001e61000000101000000000000000000f03f0000000000000040');",
            kind="features",
        ),
    ),
}
INTO_SPATIALITE = (
    "SQLite with VirtualText",
    "SQLite with VirtualOGR of a file",
    "GeoPackage with dbstat",
    "GeoPackage trigger",
)
"""Also converted in a run that loads SpatiaLite once it has read them: its functions and virtual tables read files."""
CASES |= {
    f"{name} into SpatiaLite": CASES[name]._replace(fields={"outputFormat": "SpatiaLite"}) for name in INTO_SPATIALITE
}
