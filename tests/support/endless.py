"""A file whose conversion lasts as long as a test needs it to, on every host."""

import sqlite3
from contextlib import closing

from tests.hostile.databases import CONTENTS, VIEW

NAME = "endless.gpkg"
_COUNTING_WITHOUT_END = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 1 AS fid, max(x) AS a FROM n"
)


def endless_file() -> bytes:
    """A GeoPackage of a few kilobytes whose conversion runs until a limit ends it, in little memory."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA application_id = 1196444487")
        database.execute("PRAGMA user_version = 10200")
        database.executescript(CONTENTS + VIEW + _COUNTING_WITHOUT_END + ";")
        database.execute("INSERT INTO gpkg_contents (table_name, data_type, srs_id) VALUES ('t', 'attributes', 4326)")
        return database.serialize()
