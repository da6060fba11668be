"""Finds what a GeoPackage holds beside its layers, which no target can hold. Runs in the sandbox."""

import sqlite3

DESCRIPTIONS = """
    SELECT total(data_type IN ('features', 'attributes') AND trim(description) <> ''),
        (SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'gpkg_metadata'),
        total(data_type IN ('tiles', '2d-gridded-coverage', 'vector-tiles')),
        (SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'gpkg_data_column_constraints')
    FROM gpkg_contents
"""
"""How many layers a user has described, whether there is metadata, how many tables have tiles, and whether codes."""
METADATA = """
    SELECT count(*) FROM gpkg_metadata WHERE CASE md_standard_uri
        WHEN 'http://gdal.org' THEN 0
        WHEN 'http://mrcc.com/qgis.dtd' THEN metadata GLOB '*<abstract>[^<]*' OR metadata GLOB '*<keyword>[^<]*'
            OR metadata GLOB '*<rights>[^<]*' OR metadata GLOB '*<license>[^<]*' OR metadata GLOB '*<name>[^<]*'
        ELSE 1 END
"""
"""The query for how many documents of metadata there are, without those that programs write by themselves."""
CODES = """
    SELECT count(DISTINCT constraint_name) FROM gpkg_data_column_constraints
    WHERE constraint_type = 'enum' AND trim(description) <> ''
"""
"""The query for how many lists say what codes in columns stand for."""


def says_of_itself(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """How many descriptions and documents of metadata a GeoPackage has, tables of tiles, and lists of codes."""
    try:
        descriptions, has_metadata, tiles, has_codes = connection.execute(DESCRIPTIONS).fetchone()
        documents = connection.execute(METADATA).fetchone()[0] if has_metadata else 0
        codes = connection.execute(CODES).fetchone()[0] if has_codes else 0
    except sqlite3.DatabaseError:
        return 0, 0, 0  # the driver reports what is wrong
    return int(descriptions) + int(documents), int(tiles), int(codes)
