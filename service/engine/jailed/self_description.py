"""Finds what a GeoPackage has beside its layers, of which no target has anything. Runs in the sandbox."""

import sqlite3

DESCRIPTIONS = """
    SELECT total(data_type IN ('features', 'attributes') AND trim(description) <> ''),
        (SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'gpkg_metadata'),
        total(data_type IN ('tiles', '2d-gridded-coverage', 'vector-tiles'))
    FROM gpkg_contents
"""
"""The query for how many layers a user has described, whether there is metadata, and how many tables have tiles."""
METADATA = """
    SELECT count(*) FROM gpkg_metadata WHERE CASE md_standard_uri
        WHEN 'http://gdal.org' THEN 0
        WHEN 'http://mrcc.com/qgis.dtd' THEN metadata GLOB '*<abstract>[^<]*' OR metadata GLOB '*<keyword>[^<]*'
            OR metadata GLOB '*<rights>[^<]*' OR metadata GLOB '*<license>[^<]*' OR metadata GLOB '*<name>[^<]*'
        ELSE 1 END
"""
"""The query for how many documents of metadata there are, without those that programs write by themselves."""


def says_of_itself(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many descriptions and documents of metadata a GeoPackage has, and how many tables of tiles."""
    try:
        descriptions, has_metadata, tiles = connection.execute(DESCRIPTIONS).fetchone()
        documents = connection.execute(METADATA).fetchone()[0] if has_metadata else 0
    except sqlite3.DatabaseError:
        return 0, 0  # the driver reports what is wrong
    return int(descriptions) + int(documents), int(tiles)
