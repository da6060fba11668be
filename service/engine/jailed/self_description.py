"""Finds what a GeoPackage holds beside its layers, which no target can hold. Runs in the sandbox."""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from service.engine.jailed.gpkg import LAYERS

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
    WHERE constraint_type = 'enum' AND trim(description) <> '' AND constraint_name NOT GLOB '_*_domain_description'
"""
"""The query for how many lists say what codes in columns stand for; GDAL describes each by an entry of such a name."""

UNLISTED = """
    SELECT count(*) FROM gpkg_contents c JOIN gpkg_geometry_columns g ON lower(c.table_name) = lower(g.table_name)
    WHERE c.data_type = 'attributes'
"""
"""The query for how many tables have a geometry column that is not read, because they are listed as attributes."""
UNPLACED = """
    SELECT count(*) FROM gpkg_contents WHERE data_type = 'features'
        AND lower(table_name) IN (SELECT lower(name) FROM sqlite_master WHERE type IN ('table', 'view'))
        AND lower(table_name) NOT IN (SELECT lower(table_name) FROM gpkg_geometry_columns)
"""
"""The query for how many layers are not read, because the file does not say which column has their geometries."""
TITLES = """
    SELECT count(*) FROM gpkg_data_columns WHERE trim(coalesce(title, '')) NOT IN ('', column_name)
        OR trim(coalesce(name, '')) NOT IN ('', column_name) OR trim(coalesce(description, '')) NOT IN ('', column_name)
"""
"""The query for how many columns have a title, an alias (name) or a description."""
LIMITS = """
    SELECT count(DISTINCT constraint_name) FROM gpkg_data_column_constraints
    WHERE constraint_type IN ('range', 'glob') OR constraint_name NOT IN (
        SELECT constraint_name FROM gpkg_data_column_constraints WHERE trim(description) <> ''
    )
"""
"""The query for how many constraints say which values columns may have, but not what these stand for."""
_CHECKS = """
    SELECT sum(sign * ((length(sql) - length(replace(sql, 'CHECK(', ''))) / length('CHECK(')
        - (length(sql) - length(replace(sql, 'CHECK(TYPEOF(', ''))) / length('CHECK(TYPEOF(')))
    FROM (
        SELECT sign, replace(replace(replace(upper(sql), char(10), ' '), 'CHECK (', 'CHECK('), '((', '(') AS sql
        FROM (
            SELECT 1 AS sign, sql FROM sqlite_master WHERE type = 'table' AND lower(name) = lower({0})
            UNION ALL SELECT -1, dflt_value FROM pragma_table_info({0}) WHERE dflt_value IS NOT NULL
        )
    )
"""
"""The query for how many conditions a table has, without those that programs give a column for its type and width.

A default value may be a text that looks like one.
"""
RULES = f"""
    SELECT count(*) + coalesce(({_CHECKS.strip()}), 0) FROM (
        SELECT 1 FROM pragma_table_info({{0}}) WHERE NOT pk AND "notnull"
        UNION ALL SELECT 1 FROM pragma_table_info({{0}}) WHERE NOT pk AND upper(dflt_value) <> 'NULL'
        UNION ALL SELECT 1 FROM pragma_index_list({{0}}) WHERE "unique" AND origin <> 'pk'
    )
"""  # noqa: S608 -- ours
"""The query for how many rules the table of a database, named by a text of SQL, has for the values of its columns."""
RELATIONS = "SELECT count(*) FROM gpkgext_relations"
LISTS_ALL = (
    "EXISTS (SELECT 1 FROM gpkg_contents WHERE data_type = 'attributes')",
    "EXISTS (SELECT 1 FROM gpkg_extensions WHERE extension_name = 'gdal_aspatial' AND table_name IS NULL)",
)
"""The conditions under which only tables that the file lists are read: it lists some without geometry, or GDAL before
2.2 has declared that it would list all of them."""
_UNREGISTERED = """
    SELECT count(*) FROM sqlite_master
    WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' AND lower(name) NOT GLOB 'gpkg*'
        AND lower(name) NOT GLOB 'rtree_*' AND lower(name) NOT GLOB 'sqlite_*'
        AND lower(name) NOT IN (SELECT lower(table_name) FROM gpkg_contents)
        AND lower(name) NOT IN ('android_metadata', 'qgis_projects')
        AND {}
"""
"""The query for how many tables are not read under a condition, because the file does not list them.

Those that Android and QGIS keep for themselves are no data.
"""
UNREGISTERED = _UNREGISTERED.format(LISTS_ALL[0])
UNREGISTERED_BY_GDAL = _UNREGISTERED.format(f"{LISTS_ALL[1]} AND NOT {LISTS_ALL[0]}")
VIEWS = """
    SELECT name FROM sqlite_master WHERE type = 'view' AND lower(name) IN (SELECT lower(table_name) FROM gpkg_contents)
"""
"""The query for the views that may be layers."""
COUNT_OF_VIEWS = f"SELECT count(*) FROM ({VIEWS})"  # noqa: S608 -- ours
EPOCHS = """
    SELECT count(*) FROM (SELECT srs_id AS system, NULL AS epoch FROM gpkg_geometry_columns) layer
    WHERE (SELECT epoch FROM gpkg_spatial_ref_sys WHERE srs_id = layer.system) > 0
"""
"""The query for how many layers have coordinates of an epoch; where systems have no such column, it is that of `layer`.
"""
FURTHER = {
    METADATA: "gpkg_metadata",
    CODES: "gpkg_data_column_constraints",
    LIMITS: "gpkg_data_column_constraints",
    UNLISTED: "gpkg_geometry_columns",
    TITLES: "gpkg_data_columns",
    RELATIONS: "gpkgext_relations",
    UNREGISTERED: "gpkg_contents",
    UNREGISTERED_BY_GDAL: "gpkg_extensions",
    COUNT_OF_VIEWS: "gpkg_contents",
    EPOCHS: "gpkg_geometry_columns",
    UNPLACED: "gpkg_geometry_columns",
}
"""Queries that find a number, each with the table that a GeoPackage needs for it."""
_HAS = ", ".join(
    f"(SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = '{name}') AS has_{number}"  # noqa: S608 -- ours
    for number, name in enumerate(FURTHER.values())  # the driver gives columns of one name only once
)
DESCRIPTIONS = f"""
    SELECT total(data_type IN ({LAYERS}) AND trim(description) <> '') + total(
            data_type IN ({LAYERS}) AND trim(identifier) <> ''
            AND lower(trim(identifier)) NOT LIKE '%' || lower(table_name)
        ),
        total(data_type IN ('tiles', '2d-gridded-coverage', 'vector-tiles')), {_HAS}
    FROM gpkg_contents
"""  # noqa: S608 -- ours
"""How often a user has described layers or given them a title, how many tables have tiles, and which of the tables of
`FURTHER` there are."""
BEFORE_FURTHER = 2


class Beside(NamedTuple):
    """How many descriptions a GeoPackage has of itself, tables of tiles, and what the queries of `FURTHER` find."""

    said: int = 0
    tiles: int = 0
    codes: int = 0
    unlisted: int = 0
    titles: int = 0
    limits: int = 0
    relations: int = 0
    unregistered: int = 0
    views: int = 0
    epochs: int = 0
    unplaced: int = 0


def beside(told: Sequence[float], found: Sequence[int]) -> Beside:
    """What `DESCRIPTIONS` has `told` and the queries of `FURTHER` have `found`.

    Each relation has a table of its own, which need not be listed.
    """
    documents, codes, limits, unlisted, titles, relations, unregistered, unregistered_by_gdal, *others = found
    unread = max(unregistered + unregistered_by_gdal - relations, 0)
    return Beside(int(told[0]) + documents, int(told[1]), codes, unlisted, titles, limits, relations, unread, *others)


def lists_all(connection: sqlite3.Connection) -> bool:
    """Whether a GeoPackage lists all tables that are read."""
    for condition in LISTS_ALL:
        with suppress(sqlite3.OperationalError):  # it may declare nothing of its own
            if connection.execute(f"SELECT {condition}").fetchone()[0]:
                return True
    return False


def says_of_itself(connection: sqlite3.Connection) -> Beside:
    """What a GeoPackage holds beside its layers; nothing if it cannot be read."""
    try:
        told = connection.execute(DESCRIPTIONS).fetchone()
        found = [
            connection.execute(query).fetchone()[0] if has else 0
            for has, query in zip(told[BEFORE_FURTHER:], FURTHER, strict=True)
        ]
    except sqlite3.DatabaseError:
        return Beside()  # the driver reports what is wrong
    return beside(told, found)
