"""Which EPSG codes are coordinate systems for maps, according to PROJ's own database (interface 9)."""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from functools import cache, lru_cache, partial
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from service.errors import Rejection
from service.formats.grids import (
    Accuracy,
    Extent,
    LackingGrid,
    Operation,
    accuracy_of,
    is_same_everywhere,
    lacking_grid,
    operations_between,
    size,
)

WGS84 = 4326
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
HORIZONTAL = "SELECT horiz_crs_code FROM compound_crs WHERE auth_name = 'EPSG' AND code = ?"
DATUM = """
SELECT d.auth_name || ':' || d.code, e.semi_major_axis * u.conv_factor
  FROM geodetic_crs g
  JOIN geodetic_datum d ON d.auth_name = g.datum_auth_name AND d.code = g.datum_code
  JOIN ellipsoid e ON e.auth_name = d.ellipsoid_auth_name AND e.code = d.ellipsoid_code
  JOIN unit_of_measure u ON u.auth_name = e.uom_auth_name AND u.code = e.uom_code
 WHERE g.auth_name = 'EPSG' AND g.code = ?
"""
"""The datum of a geographic system, and the greater axis of its ellipsoid in meters."""
RELATED = """
WITH operation (source_code, target_code, grid) AS (
    SELECT source_crs_code, target_crs_code, NULL FROM helmert_transformation_table
     WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG'
    UNION ALL
    SELECT source_crs_code, target_crs_code, NULL FROM other_transformation
     WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG'
    UNION ALL
    SELECT source_crs_code, target_crs_code, grid_name FROM grid_transformation
     WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG'
    UNION ALL
    SELECT source_crs_code, target_crs_code, NULL FROM concatenated_operation c
     WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG' AND NOT EXISTS (
        SELECT 1 FROM concatenated_operation_step s
          JOIN grid_transformation g ON g.auth_name = s.step_auth_name AND g.code = s.step_code
         WHERE s.operation_auth_name = c.auth_name AND s.operation_code = c.code)
)
SELECT DISTINCT s.datum_auth_name || ':' || s.datum_code, t.datum_auth_name || ':' || t.datum_code,
       o.grid, a.proj_grid_name, a.old_proj_grid_name
  FROM operation o
  JOIN geodetic_crs s ON s.auth_name = 'EPSG' AND s.code = o.source_code
  JOIN geodetic_crs t ON t.auth_name = 'EPSG' AND t.code = o.target_code
  LEFT JOIN grid_alternatives a ON a.original_grid_name = o.grid
"""
"""Pairs of datums between which PROJ has a transformation, and the names that its grid may have."""
HEIGHTS = """
SELECT v.name, v.datum_auth_name || ':' || v.datum_code
  FROM compound_crs c JOIN vertical_crs v ON v.auth_name = c.vertical_crs_auth_name AND v.code = c.vertical_crs_code
 WHERE c.auth_name = 'EPSG' AND c.code = ?1
UNION ALL
SELECT 'ellipsoidal height', 'ellipsoid' FROM geodetic_crs
 WHERE auth_name = 'EPSG' AND code = ?1 AND type = 'geographic 3D'
"""
"""The name and the datum of the heights that a system has."""
RELATED_HEIGHTS = """
WITH operation (source, target, grid) AS (
    SELECT source_crs_code, target_crs_code, NULL FROM other_transformation
     WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG'
    UNION ALL
    SELECT source_crs_code, target_crs_code, grid_name FROM grid_transformation
     WHERE deprecated = 0 AND source_crs_auth_name = 'EPSG' AND target_crs_auth_name = 'EPSG'
), height (code, datum) AS MATERIALIZED (
    SELECT code, datum_auth_name || ':' || datum_code FROM vertical_crs WHERE auth_name = 'EPSG'
    UNION ALL
    SELECT code, 'ellipsoid' FROM geodetic_crs WHERE auth_name = 'EPSG' AND type = 'geographic 3D'
)
SELECT DISTINCT s.datum, t.datum, o.grid, a.proj_grid_name, a.old_proj_grid_name
  FROM operation o JOIN height s ON s.code = o.source JOIN height t ON t.code = o.target
  LEFT JOIN grid_alternatives a ON a.original_grid_name = o.grid
 WHERE s.datum <> t.datum
"""
"""Pairs of datums of heights between which PROJ has a transformation, and the names that its grid may have."""
DATUMS = """
SELECT name FROM geodetic_datum UNION SELECT alt_name FROM alias_name WHERE table_name = 'geodetic_datum'
"""
"""The names of all datums."""
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
MODERN_AXIS = 6378137
"""The semi-major axis of the ellipsoids of modern datums, in meters."""
ALIKE_METERS = 10
"""Datums whose ellipsoids differ less are modern ones, which differ by a few meters at most."""
TRANSVERSE = """
SELECT m.param4_value * easting.conv_factor, unit.conv_factor
  FROM projected_crs p
  JOIN conversion_table m ON m.auth_name = p.conversion_auth_name AND m.code = p.conversion_code
  JOIN unit_of_measure easting ON easting.auth_name = m.param4_uom_auth_name AND easting.code = m.param4_uom_code
  JOIN axis a ON a.coordinate_system_auth_name = p.coordinate_system_auth_name
   AND a.coordinate_system_code = p.coordinate_system_code AND a.coordinate_system_order = 1
  JOIN unit_of_measure unit ON unit.auth_name = a.uom_auth_name AND unit.code = a.uom_code
 WHERE m.method_auth_name = 'EPSG' AND m.method_code IN ('9807', '9808') AND p.auth_name = 'EPSG' AND p.code =
       coalesce((SELECT horiz_crs_code FROM compound_crs WHERE auth_name = 'EPSG' AND code = ?1), ?1)
"""
"""False easting and unit, both in meters, of a Transverse Mercator projection, also below a compound system."""
TRANSVERSE_REACH_METERS = 2e6
"""How far from its central meridian a Transverse Mercator projection is of use; lengths are 5 % too long there. No area
of one in use reaches that far, nor do the two zones beside any of UTM."""
MODIFIED_KROVAK, MODIFIED_KROVAK_SINCE = frozenset({5224, 5225, 5515, 5516}), (9, 4)
"""Systems of the projection that PROJ's database has had longer than PROJ itself, and the version that computes it."""
VERSION = "SELECT value FROM metadata WHERE key = 'PROJ.VERSION'"
PLANE_TYPES = frozenset({"geographic 2D", "projected"})
HIGH_TYPES = frozenset({"geographic 3D", "compound"})
MAP_TYPES = PLANE_TYPES | HIGH_TYPES
PLACED_TYPES = MAP_TYPES | {"geocentric", "other"}
EVERY = """
SELECT CAST(c.code AS INTEGER), c.name, coalesce(min(e.description), '')
  FROM crs_view c
  LEFT JOIN usage u ON u.object_table_name = c.table_name AND u.object_auth_name = c.auth_name
   AND u.object_code = c.code
  LEFT JOIN extent e ON e.auth_name = u.extent_auth_name AND e.code = u.extent_code
 WHERE c.auth_name = 'EPSG' AND c.deprecated = 0 AND c.type IN ('geographic 2D', 'projected')
 GROUP BY c.code, c.name
"""
MOST_FOUND = 20
MOST_WORDS = 8
USUAL = ("wgs 84", "etrs89", "nad83", "gda2020")
"""Families of systems that users search for most."""
MAX_CODE = (1 << 31) - 1
FULL_CIRCLE = 360.0
NEAR_DATE_LINE, NEAR_POLE = 165, 85
"""Degrees beyond which data of a system may lie across an edge: areas are those on shore, or of a zone."""

REMEMBERED = 4096
"""How many results are cached: most requests name one of a few systems, and opening the database takes the time."""


class _Entry(msgspec.Struct, frozen=True):
    """A system, and the text that a search looks through."""

    epsg: int
    name: str
    area: str
    text: str

    def rank(self, words: Sequence[str]) -> tuple[bool, bool, bool, int, int]:
        """Sort key: systems with a matching code first, then matching names, usual systems, short names."""
        name = self.name.casefold()
        in_name = all(word in name for word in words)
        return str(self.epsg) not in words, not in_name, not name.startswith(USUAL), len(name), self.epsg


class CrsCatalogue:
    """The coordinate systems of one PROJ database, which never changes. A first lookup takes about a millisecond."""

    def __init__(self, database: Path) -> None:
        uri = f"{database.resolve().as_uri()}?mode=ro&immutable=1"
        self._version = cache(partial(_version, uri))
        self._datum_names = cache(partial(_datum_names, uri))
        self._every = cache(partial(_every, uri))
        self._remembered = lru_cache(REMEMBERED)(partial(_ask, uri))
        self._related = cache(partial(_related, uri, database.parent))
        self._defined_by = cache(partial(_defined_by, uri, database.parent))
        self._operations = lru_cache(REMEMBERED)(partial(operations_between, uri, database.parent))
        self.depends_on_place = lru_cache(REMEMBERED)(self._depends_on_place)

    def _ask(self, query: str, epsg: int) -> list[tuple[Any, ...]]:
        """The rows that a query finds for a code; none for what no code can be."""
        return self._remembered(query, epsg) if 0 < epsg <= MAX_CODE else []

    def is_geographic(self, epsg: int) -> bool:
        """Whether the coordinates of `epsg` are degrees of longitude and latitude, or the like."""
        row = self._find(epsg)
        return row is not None and row[1].startswith("geographic")

    def is_in_degrees(self, epsg: int) -> bool:
        """Whether its horizontal coordinates are such, also beside the heights of a compound system."""
        return any(self.is_geographic(int(code)) for (code,) in [*self._ask(HORIZONTAL, epsg), (epsg,)])

    def has_positions(self, epsg: int) -> bool:
        """Whether coordinates in `epsg` are positions on the Earth: not so of heights, and of systems of a site."""
        row = self._find(epsg)
        return row is None or row[1] in PLACED_TYPES

    def is_plane(self, epsg: int) -> bool:
        """Whether `epsg` has two axes."""
        row = self._find(epsg)
        return row is not None and row[1] in PLANE_TYPES

    def is_compound(self, epsg: int) -> bool:
        """Whether `epsg` says what elevations are, beside a system of two axes."""
        row = self._find(epsg)
        return row is not None and row[1] == "compound"

    def has_heights(self, epsg: int) -> bool:
        """Whether positions in `epsg` have three numbers, of which the third is a height."""
        row = self._find(epsg)
        return row is not None and row[1] in HIGH_TYPES

    def has(self, epsg: int) -> bool:
        """Whether there is a coordinate system with this code."""
        return self._find(epsg) is not None

    def computes(self, epsg: int) -> bool:
        """Whether PROJ knows the projection of `epsg`."""
        return epsg not in MODIFIED_KROVAK or self._version() >= MODIFIED_KROVAK_SINCE

    def ends_at_date_line(self, epsg: int) -> bool:
        """Whether this is a system for maps of the world from one side of the date line to the other.

        Others, also those of the poles, are continuous there.
        """
        return any(east - west == FULL_CIRCLE and south < 0 < north for west, south, east, north in self._areas(epsg))

    def nears_edges(self, epsg: int) -> bool:
        """Whether a part of the area of `epsg` is near the date line or a pole, and the system is continuous there."""
        return not self.ends_at_date_line(epsg) and any(
            west > east or max(-west, east) > NEAR_DATE_LINE or max(-south, north) > NEAR_POLE
            for west, south, east, north in self._areas(epsg)
        )

    def covers(self, epsg: int, extent: tuple[float, float, float, float]) -> bool:
        """Whether `extent`, in degrees, is within an area for which `epsg` is made."""
        x_min, y_min, x_max, y_max = extent
        return any(
            west <= x_min and x_max <= east and south <= y_min and y_max <= north
            for west, south, east, north in self._areas(epsg)
        )

    def has_other_lengths(self, epsg: int) -> bool:
        """Whether the horizontal coordinates of `epsg` are lengths in another unit than meters, such as feet."""
        return any(unit != 1 for (unit,) in self._ask(UNIT, epsg))

    def reach(self, epsg: int) -> tuple[float, float]:
        """The least and the greatest x at which `epsg` is of use, in its unit; infinite if its projection has no limit.

        Transverse Mercator is the projection with one that PROJ computes exactly far beyond its zone.
        """
        found = self._ask(TRANSVERSE, epsg)
        if not found:
            return -inf, inf
        (easting, unit) = found[0]
        return (easting - TRANSVERSE_REACH_METERS) / unit, (easting + TRANSVERSE_REACH_METERS) / unit

    def share_datum(self, one: int, other: int) -> bool:
        """Whether no datum changes between two systems, so that a transformation there and back is exact."""
        return self._ask(BASE, one) == self._ask(BASE, other) != []

    def relates(self, one: int, other: int) -> bool:
        """Whether PROJ can change between the datums of two systems with the grids of this host, or by way of another.

        It takes datums for the same if it cannot. Those of modern systems count as related, since they nearly are the
        same, unless a grid defines one. The first question about different datums takes some 20 milliseconds.
        """
        found = [*self._datums(one), *self._datums(other)]
        if len(found) < 2:  # noqa: PLR2004 -- both
            return True
        datum, other_datum = (datum for datum, _ in found)
        if datum == other_datum or (self.are_modern(one, other) and not self.defining_grid(one, other)):
            return True
        related = self._related(RELATED)
        return other_datum in related[datum] or bool(related[datum] & related[other_datum])

    def are_modern(self, one: int, other: int) -> bool:
        """Whether the datums of two systems nearly are the same, by their ellipsoids."""
        axes = [axis for _, axis in (*self._datums(one), *self._datums(other))]
        return max(axes, default=0) - min(axes, default=0) < ALIKE_METERS

    def defining_grid(self, one: int, other: int) -> str:
        """The grid that alone relates one of two datums to others, if not even PROJ's collection has it; or "".

        The intermediate frames of British railways are such: they bend the Earth along a line.
        """
        known = self._defined_by()
        return next((known[datum] for epsg in (one, other) for datum, _ in self._datums(epsg) if datum in known), "")

    def knows_datum(self, name: str, axis: float) -> bool:
        """Whether PROJ knows what a datum of this name is, or its ellipsoid says that it is a modern one.

        `axis` is the semi-major axis of its ellipsoid in meters.
        """
        return abs(axis - MODERN_AXIS) < ALIKE_METERS or _plain(name) in self._datum_names()

    def lacking_grid(self, one: int, other: int, extent: Extent | None) -> LackingGrid | None:
        """The grid without which coordinates in `one` become less accurate in `other`, if most places lack one.

        `extent` is that of the places, in degrees; without one, they may be anywhere in the area of both.
        """
        operations = self._changes(one, other)
        area = (extent or self._common_area(one, other)) if operations else None
        return None if area is None else lacking_grid(operations, area)

    def accuracy(self, one: int, other: int, extent: Extent | None) -> Accuracy | None:
        """How accurate coordinates in `one` become in `other`; None if nothing is known of that.

        Nearly the same datums, which by convention are not told apart, have none either.
        """
        if self.are_modern(one, other):
            return None
        operations = self._changes(one, other)
        area = (extent or self._common_area(one, other)) if operations else None
        return None if area is None else accuracy_of(operations, area)

    def _depends_on_place(self, one: int, other: int) -> bool:
        """Whether that grid depends on where in the area of both systems places are."""
        operations = self._changes(one, other)
        area = self._common_area(one, other) if operations else None
        return area is not None and not is_same_everywhere(operations, area)

    def _changes(self, one: int, other: int) -> Sequence[Operation]:
        """The operations between the datums of two systems; none if they have the same."""
        datums = sorted({datum for epsg in (one, other) for datum, _ in self._datums(epsg)})
        return self._operations(*datums) if len(datums) == 2 else ()  # noqa: PLR2004 -- both

    def _common_area(self, one: int, other: int) -> Extent | None:
        """The area of both systems: that of the one with the smaller area, as far as EPSG knows."""
        return min((area for epsg in (one, other) for area in self._areas(epsg)[:1]), key=size, default=None)

    def _datums(self, epsg: int) -> list[tuple[Any, ...]]:
        """The datum of a system, and the greater axis of its ellipsoid, if it has one."""
        bases = self._ask(BASE, epsg)
        return self._ask(DATUM, int(bases[0][0])) if bases else []

    def heights(self, epsg: int) -> str | None:
        """What elevations in the system `epsg` are, as 'EGM96 height'; None if it does not say."""
        return next((name for name, _ in self._heights(epsg)), None)

    def relates_heights(self, one: int, other: int) -> bool:
        """Whether PROJ can transform elevations between two systems with the grids of this host, or has no need to.

        If it cannot, it changes nothing but their unit. The first question about different ones takes 30 milliseconds.
        """
        datums = {datum for epsg in (one, other) for _, datum in self._heights(epsg)}
        if len(datums) < 2:  # noqa: PLR2004 -- both
            return True
        datum, other_datum = datums
        related = self._related(RELATED_HEIGHTS)
        return other_datum in related[datum] or bool(related[datum] & related[other_datum])

    def _heights(self, epsg: int) -> list[tuple[Any, ...]]:
        """The name and the datum of the heights in the system `epsg`, if it has some."""
        return self._ask(HEIGHTS, epsg)

    def search(self, text: str) -> list[tuple[int, str, str]]:
        """Return code, name and area of the plane systems that match every word of `text`, the most likely first.

        The first search takes a quarter of a second, others a few milliseconds.
        """
        words = text.casefold().replace("epsg:", " ").split()[:MOST_WORDS]
        found = [entry for entry in self._every() if all(word in entry.text for word in words)]
        found.sort(key=lambda entry: entry.rank(words))
        return [(entry.epsg, entry.name, entry.area) for entry in found[:MOST_FOUND]]

    def resolve(self, epsg: int, parameter: str) -> int:
        """The code that is used for `epsg`, the value of `parameter`; some deprecated codes have a successor.

        Raises:
            Rejection: the code is unknown, or its system is vertical, geocentric or an engineering system.
        """
        row = self._find(epsg)
        if row is None:
            raise Rejection(
                f"EPSG:{epsg} ({parameter}) is not a known coordinate system. Codes are listed at https://epsg.io; "
                "4326 (WGS 84) is the default."
            )
        name, kind, _ = row
        if kind not in MAP_TYPES:
            raise Rejection(
                f"EPSG:{epsg} ({parameter}, {name}) is of the type {kind!r} and cannot hold a map. Choose a "
                "geographic or projected one, such as 4326 or 3857."
            )
        return self.successor(epsg)

    def successor(self, epsg: int) -> int:
        """The code that replaces `epsg` if it is deprecated and has one successor, otherwise itself."""
        row = self._find(epsg)
        successors = self._ask(SUCCESSORS, epsg) if row is not None and row[2] else []
        return int(successors[0][0]) if len(successors) == 1 else epsg

    def _areas(self, epsg: int) -> list[tuple[Any, ...]]:
        """West, south, east and north of the areas for which `epsg` is made."""
        return self._ask(AREA, epsg)

    def _find(self, epsg: int) -> tuple[str, str, int] | None:
        return next(iter(self._ask(SYSTEM, epsg)), None)


def _ask(uri: str, query: str, epsg: int) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return connection.execute(query, (str(epsg),)).fetchall()


def _version(uri: str) -> tuple[int, ...]:
    """The version of PROJ that the database belongs to; none if it does not say."""
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        (value,) = connection.execute(VERSION).fetchone() or ("",)
    return tuple(int(part) for part in value.split(".") if part.isdecimal())


def _datum_names(uri: str) -> frozenset[str]:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        return frozenset(_plain(name) for (name,) in connection.execute(DATUMS))


def _plain(name: str) -> str:
    """A name as PROJ compares it, whatever is between its words."""
    return "".join(filter(_is_compared, name.casefold()))


def _is_compared(character: str) -> bool:
    return character.isalnum() or character == "+"


def _every(uri: str) -> list[_Entry]:
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(EVERY).fetchall()
    return [_Entry(epsg, name, area, f"{epsg} {name} {area}".casefold()) for epsg, name, area in rows]


def _defined_by(uri: str, grids: Path) -> dict[str, str]:
    """The datums for which all operations need grids that are neither there nor in PROJ's collection, and the grid."""
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(RELATED).fetchall()
    there = {file.name for file in grids.iterdir()}
    defined, others = dict[str, str](), set[str]()
    for one, other, grid, name, _ in rows:
        if grid is None or name is not None or grid in there:
            others |= {one, other} if one != other else set()
        else:
            defined |= {one: grid, other: grid}
    return {datum: grid for datum, grid in defined.items() if datum not in others}


def _related(uri: str, grids: Path, query: str) -> defaultdict[str, set[str]]:
    """For each datum those to which PROJ has a transformation by `query`, if it needs no grid or one that is there."""
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(query).fetchall()
    there = {None, *(file.name for file in grids.iterdir())}
    related = defaultdict[str, set[str]](set)
    for one, other, grid, *names in rows:
        if not there.isdisjoint((grid, *filter(None, names))):
            related[one].add(other)
            related[other].add(one)
    return related
