"""What PROJ's database says of coordinate systems, and of the datums between which there are transformations."""

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from math import inf, isfinite
from pathlib import Path
from typing import Any

import msgspec

from service.formats.grids import TABLES, Extent

SYSTEM = "SELECT name, type, deprecated FROM crs_view WHERE auth_name = 'EPSG' AND code = ?"
SUCCESSORS = """
SELECT replacement_code FROM deprecation
WHERE deprecated_auth_name = 'EPSG' AND deprecated_code = ? AND replacement_auth_name = 'EPSG'
  AND table_name IN ('geodetic_crs', 'projected_crs', 'compound_crs')
"""
AREA = """
SELECT e.west_lon, e.south_lat, e.east_lon, e.north_lat
  FROM crs_view c
  JOIN usage u ON u.object_table_name = c.table_name AND u.object_auth_name = c.auth_name AND u.object_code = c.code
  JOIN extent e ON e.auth_name = u.extent_auth_name AND e.code = u.extent_code
 WHERE c.auth_name = 'EPSG' AND c.code = ?
"""
BASE = """
SELECT coalesce(p.geodetic_crs_code, c.code)
  FROM crs_view c LEFT JOIN projected_crs p ON p.auth_name = c.auth_name AND p.code = c.code
 WHERE c.auth_name = 'EPSG' AND c.code = ?
"""
"""The geographic system on which a projected one is based; other systems are their own."""
HORIZONTAL = """
SELECT h.type
  FROM compound_crs c JOIN crs_view h ON h.auth_name = 'EPSG' AND h.code = c.horiz_crs_code
 WHERE c.auth_name = 'EPSG' AND c.code = ?
"""
"""The type of the system of positions in a compound one."""
DATUM = """
SELECT d.auth_name || ':' || d.code, e.semi_major_axis * u.conv_factor
  FROM geodetic_crs g
  JOIN geodetic_datum d ON d.auth_name = g.datum_auth_name AND d.code = g.datum_code
  JOIN ellipsoid e ON e.auth_name = d.ellipsoid_auth_name AND e.code = d.ellipsoid_code
  JOIN unit_of_measure u ON u.auth_name = e.uom_auth_name AND u.code = e.uom_code
 WHERE g.auth_name = 'EPSG' AND g.code = ?
"""
"""The datum of a geographic system, and the greater axis of its ellipsoid in meters."""
HEIGHTS = """
SELECT v.name, v.datum_auth_name || ':' || v.datum_code
  FROM compound_crs c JOIN vertical_crs v ON v.auth_name = c.vertical_crs_auth_name AND v.code = c.vertical_crs_code
 WHERE c.auth_name = 'EPSG' AND c.code = ?1
UNION ALL
SELECT 'ellipsoidal height', 'ellipsoid' FROM geodetic_crs
 WHERE auth_name = 'EPSG' AND code = ?1 AND type = 'geographic 3D'
"""
"""The name and the datum of the heights that a system has."""
UNIT = """
SELECT u.conv_factor
  FROM projected_crs p
  JOIN axis a ON a.coordinate_system_auth_name = p.coordinate_system_auth_name
   AND a.coordinate_system_code = p.coordinate_system_code AND a.coordinate_system_order = 1
  JOIN unit_of_measure u ON u.auth_name = a.uom_auth_name AND u.code = a.uom_code
 WHERE p.auth_name = 'EPSG' AND p.code =
       coalesce((SELECT horiz_crs_code FROM compound_crs WHERE auth_name = 'EPSG' AND code = ?1), ?1)
"""
"""The unit of a projected system, in meters, also below a compound system."""
FALSE_EASTING = """
SELECT m.param4_value * u.conv_factor
  FROM projected_crs p
  JOIN conversion_table m ON m.auth_name = p.conversion_auth_name AND m.code = p.conversion_code
  JOIN unit_of_measure u ON u.auth_name = m.param4_uom_auth_name AND u.code = m.param4_uom_code
 WHERE m.method_auth_name = 'EPSG' AND m.method_code IN ('9807', '9808') AND p.auth_name = 'EPSG' AND p.code =
       coalesce((SELECT horiz_crs_code FROM compound_crs WHERE auth_name = 'EPSG' AND code = ?1), ?1)
"""
"""The false easting of a Transverse Mercator projection, in meters, also below a compound system."""
_OPERATION = """
SELECT source_crs_code, target_crs_code, {grid} FROM {table}
 WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG'
"""
_OF_ONE_STEP = "UNION ALL".join(_OPERATION.format(**row) for row in TABLES)
_GRIDS = "o.grid, a.proj_grid_name, a.old_proj_grid_name"
RELATED = f"""
WITH operation (source, target, grid) AS (
    {_OF_ONE_STEP} UNION ALL
    {_OPERATION.format(grid="NULL", table="concatenated_operation c")} AND NOT EXISTS (
        SELECT 1 FROM concatenated_operation_step s
          JOIN grid_transformation g ON g.auth_name = s.step_auth_name AND g.code = s.step_code
         WHERE s.operation_auth_name = c.auth_name AND s.operation_code = c.code)
)
SELECT DISTINCT s.datum_auth_name || ':' || s.datum_code, t.datum_auth_name || ':' || t.datum_code, {_GRIDS}
  FROM operation o
  JOIN geodetic_crs s ON s.auth_name = 'EPSG' AND s.code = o.source
  JOIN geodetic_crs t ON t.auth_name = 'EPSG' AND t.code = o.target
  LEFT JOIN grid_alternatives a ON a.original_grid_name = o.grid
"""  # noqa: S608 -- names of tables
"""Pairs of datums between which PROJ has a transformation, and the names that its grid may have."""
RELATED_HEIGHTS = f"""
WITH operation (source, target, grid) AS ({_OF_ONE_STEP}), height (code, datum) AS MATERIALIZED (
    SELECT code, datum_auth_name || ':' || datum_code FROM vertical_crs WHERE auth_name = 'EPSG'
    UNION ALL
    SELECT code, 'ellipsoid' FROM geodetic_crs WHERE auth_name = 'EPSG' AND type = 'geographic 3D'
)
SELECT DISTINCT s.datum, t.datum, {_GRIDS}
  FROM operation o JOIN height s ON s.code = o.source JOIN height t ON t.code = o.target
  LEFT JOIN grid_alternatives a ON a.original_grid_name = o.grid
 WHERE s.datum <> t.datum
"""  # noqa: S608 -- the same
"""Pairs of datums of heights between which PROJ has a transformation, and the names that its grid may have."""
DATUMS = """
SELECT n.name, m.longitude = 0, e.semi_major_axis * u.conv_factor, e.inv_flattening
  FROM (SELECT auth_name, code, name FROM geodetic_datum
        UNION ALL SELECT auth_name, code, alt_name FROM alias_name WHERE table_name = 'geodetic_datum') n
  JOIN geodetic_datum d ON d.auth_name = n.auth_name AND d.code = n.code
  JOIN prime_meridian m ON m.auth_name = d.prime_meridian_auth_name AND m.code = d.prime_meridian_code
  JOIN ellipsoid e ON e.auth_name = d.ellipsoid_auth_name AND e.code = d.ellipsoid_code
  JOIN unit_of_measure u ON u.auth_name = e.uom_auth_name AND u.code = e.uom_code
"""
"""The names of all datums, whether they have the prime meridian of Greenwich, and the semi-major axis of their
ellipsoid in meters and its inverse flattening. If both axes define it, it has none: then PROJ compares one axis."""
VERSION = "SELECT value FROM metadata WHERE key = 'PROJ.VERSION'"
PLANE_SYSTEMS = """
SELECT CAST(c.code AS INTEGER), c.name, coalesce(min(e.description), '')
  FROM crs_view c
  LEFT JOIN usage u ON u.object_table_name = c.table_name AND u.object_auth_name = c.auth_name
   AND u.object_code = c.code
  LEFT JOIN extent e ON e.auth_name = u.extent_auth_name AND e.code = u.extent_code
 WHERE c.auth_name = 'EPSG' AND c.deprecated = 0 AND c.type IN ('geographic 2D', 'projected')
 GROUP BY c.code, c.name
"""
TRANSVERSE_REACH_METERS = 2e6
"""How far from its central meridian a Transverse Mercator projection is of use; lengths are 5 % too long there. No area
of one in use reaches that far, nor do the two zones beside any of UTM."""
MAX_CODE = (1 << 31) - 1


class KnownSystem(msgspec.Struct, frozen=True, kw_only=True):
    """What the database says of a system: nothing if it has none with the code."""

    name: str = ""
    kind: str = ""
    """Its type as PROJ calls it; "" if there is no such system."""
    horizontal_kind: str = ""
    """That of the system of positions in a compound one."""
    successors: tuple[int, ...] = ()
    """The codes that replace it, if it is deprecated."""
    areas: tuple[Extent, ...] = ()
    """West, south, east and north of the areas for which it is made."""
    base: str = ""
    """The code of the geographic system on which a projected one is based, else its own."""
    datum: tuple[str, float] | None = None
    """The datum of that one, if it has one, and the greater axis of its ellipsoid in meters."""
    heights: tuple[str, str] | None = None
    """What elevations in it are, and their datum, if it says so."""
    unit: float = 1.0
    """The unit of its horizontal coordinates in meters, if these are lengths."""
    reach: tuple[float, float] = (-inf, inf)
    """The least and the greatest x at which it is of use, in its unit; infinite if its projection has no limit."""


def system_with(uri: str, epsg: int) -> KnownSystem:
    """The system with a code, of which all is read at once: to open the database takes longer than all queries."""
    if not 0 < epsg <= MAX_CODE:
        return KnownSystem()
    with closing(sqlite3.connect(uri, uri=True)) as connection:

        def rows(query: str, code: object = epsg) -> list[tuple[Any, ...]]:
            return connection.execute(query, (str(code),)).fetchall()

        name, kind, is_deprecated = next(iter(rows(SYSTEM)), ("", "", False))
        if not kind:
            return KnownSystem()
        ((base,),) = rows(BASE)
        unit = next((unit for (unit,) in rows(UNIT)), 1.0)
        central = next((easting for (easting,) in rows(FALSE_EASTING)), inf)
        ends = central - TRANSVERSE_REACH_METERS, central + TRANSVERSE_REACH_METERS
        return KnownSystem(
            name=name,
            kind=kind,
            horizontal_kind=next((kind for (kind,) in rows(HORIZONTAL)), ""),
            successors=tuple(int(code) for (code,) in rows(SUCCESSORS)) if is_deprecated else (),
            areas=tuple(rows(AREA)),
            base=str(base),
            datum=next(iter(rows(DATUM, base)), None),
            heights=next(iter(rows(HEIGHTS)), None),
            unit=unit,
            reach=(ends[0] / unit, ends[1] / unit) if isfinite(central) else (-inf, inf),
        )


def version(uri: str) -> tuple[int, ...]:
    """The version of PROJ that the database belongs to; none if it does not say."""
    (value,) = next(iter(_rows(uri, VERSION)), ("",))
    return tuple(int(part) for part in value.split(".") if part.isdecimal())


def datum_names(uri: str) -> Mapping[str, Sequence[tuple[bool, float, float | None]]]:
    """The names of all datums, as `plain` writes them, and what `DATUMS` finds of each of them."""
    names = defaultdict[str, list[tuple[bool, float, float | None]]](list)
    for name, is_of_greenwich, axis, flattening in _rows(uri, DATUMS):
        names[plain(name)].append((bool(is_of_greenwich), axis, flattening))
    return names


def plain(name: str) -> str:
    """A name as PROJ compares it, whatever is between its words."""
    return "".join(filter(_is_compared, name.casefold()))


def _is_compared(character: str) -> bool:
    return character.isalnum() or character == "+"


def plane_systems(uri: str) -> Sequence[tuple[int, str, str]]:
    """The code, the name and the area of each system of two axes."""
    return _rows(uri, PLANE_SYSTEMS)


def defined_by(uri: str, grids: Path) -> dict[str, str]:
    """The datums for which all operations need grids that are neither there nor in PROJ's collection, and the grid."""
    there = {file.name for file in grids.iterdir()}
    defined, others = dict[str, str](), set[str]()
    for one, other, grid, name, _ in _rows(uri, RELATED):
        if grid is None or name is not None or grid in there:
            others |= {one, other} if one != other else set()
        else:
            defined |= {one: grid, other: grid}
    return {datum: grid for datum, grid in defined.items() if datum not in others}


def related(uri: str, grids: Path, query: str) -> defaultdict[str, set[str]]:
    """For each datum those to which PROJ has a transformation by `query`, if it needs no grid or one that is there."""
    there = {None, *(file.name for file in grids.iterdir())}
    found = defaultdict[str, set[str]](set)
    for one, other, grid, *names in _rows(uri, query):
        if not there.isdisjoint((grid, *filter(None, names))):
            found[one].add(other)
            found[other].add(one)
    return found


def are_related(related: Mapping[str, set[str]], one: str, other: str) -> bool:
    """Whether there is a transformation between two datums, or by way of another one."""
    ours, theirs = (related.get(datum, set()) for datum in (one, other))
    return other in ours or not ours.isdisjoint(theirs)


def _rows(uri: str, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return connection.execute(query).fetchall()
