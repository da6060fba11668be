"""Which grids that are not installed would make a change of datum more accurate, according to PROJ's own database.

PROJ takes the most accurate operation for a place whose grids are there, and says nothing of others.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from itertools import product
from math import inf
from pathlib import Path

import msgspec

Extent = tuple[float, float, float, float]
"""West, south, east and north in degrees, or x and y; an area across the date line has the greater one first."""

BETWEEN = """
deprecated = 0 AND source_crs_auth_name = 'EPSG' AND source_crs_code IN base
               AND target_crs_auth_name = 'EPSG' AND target_crs_code IN base
"""
ALONE = """
SELECT auth_name, code, '{kind}', source_crs_code, target_crs_code, code, accuracy, {grid} FROM {table} WHERE {between}
"""
IN_STEPS = """
SELECT c.auth_name, c.code, 'concatenated_operation', c.source_crs_code, c.target_crs_code, s.code, s.accuracy, {grid}
  FROM (SELECT * FROM concatenated_operation WHERE {between}) c
  JOIN concatenated_operation_step p ON p.operation_auth_name = c.auth_name AND p.operation_code = c.code
  JOIN {table} s ON s.auth_name = p.step_auth_name AND s.code = p.step_code
"""
TABLES = (
    {"kind": "helmert_transformation", "table": "helmert_transformation_table", "grid": "NULL"},
    {"kind": "other_transformation", "table": "other_transformation", "grid": "NULL"},
    {"kind": "grid_transformation", "table": "grid_transformation", "grid": "grid_name"},
)
"""The tables of operations, what others call what is in them, and the grid."""
OPERATIONS = f"""
WITH base (code) AS MATERIALIZED (
    SELECT code FROM geodetic_crs
     WHERE auth_name = 'EPSG' AND datum_auth_name || ':' || datum_code IN (?1, ?2)
), operation (auth, code, kind, source, target, part, accuracy, grid) AS (
    {" UNION ALL ".join(select.format(between=BETWEEN, **table) for select in (ALONE, IN_STEPS) for table in TABLES)}
)
SELECT o.code, o.part, o.accuracy, o.grid, a.proj_grid_name, a.old_proj_grid_name,
       e.west_lon, e.south_lat, e.east_lon, e.north_lat
  FROM operation o
  JOIN geodetic_crs s ON s.auth_name = 'EPSG' AND s.code = o.source
  JOIN geodetic_crs t ON t.auth_name = 'EPSG' AND t.code = o.target
  JOIN usage u ON u.object_table_name = o.kind AND u.object_auth_name = o.auth AND u.object_code = o.code
  JOIN extent e ON e.auth_name = u.extent_auth_name AND e.code = u.extent_code
  LEFT JOIN grid_alternatives a ON a.original_grid_name = o.grid
 WHERE o.auth IN ('EPSG', 'PROJ') AND (s.datum_auth_name, s.datum_code) <> (t.datum_auth_name, t.datum_code)
"""  # noqa: S608 -- names of tables
"""The steps of each operation between two datums that PROJ may choose, the names of its grid, and where it applies."""
SIDE = 3
"""So many places in a row and in a column stand for an area."""
FINE_METERS = 1.0
GAIN_METERS = 2.0
"""A grid counts if it makes places twice as accurate, and that to a meter, or by more than two."""


class LackingGrid(msgspec.Struct, frozen=True):
    """A grid that would make most places accurate to `meters`, in place of those of what is there (`inf`: unknown)."""

    name: str
    meters: float
    meters_without: float


class Operation(msgspec.Struct):
    """An operation that changes between two datums."""

    areas: set[Extent] = msgspec.field(default_factory=set)
    meters: dict[str, float] = msgspec.field(default_factory=dict)
    """The accuracy of each step."""
    lacking: set[str] = msgspec.field(default_factory=set)
    """The grids that are not there."""
    is_obtainable: bool = True
    """Whether PROJ's collection has all of its grids."""

    def covers(self, place: tuple[float, float]) -> bool:
        """Whether it applies there."""
        return any(_contains(area, place) for area in self.areas)


def lacking_grid(operations: Sequence[Operation], area: Extent) -> LackingGrid | None:
    """Return the grid that most places in `area` lack among those of `operations`, None if most lack none."""
    each = _lacking_by_place(operations, area)
    lacking = Counter(filter(None, each))
    return lacking.most_common(1)[0][0] if lacking and lacking.total() >= len(each) / 2 else None


def is_same_everywhere(operations: Sequence[Operation], area: Extent) -> bool:
    """Whether all places in `area` lack the same grid, or none."""
    return len(set(_lacking_by_place(operations, area))) <= 1


class Accuracy(msgspec.Struct, frozen=True):
    """To how many meters places are accurate: those that are the most, and the least; `inf` if that is unknown."""

    best: float
    worst: float
    is_known: bool
    """Whether an operation is there for most places."""


def accuracy_of(operations: Sequence[Operation], area: Extent) -> Accuracy:
    """Return how accurate the operations are in `area` whose grids are there."""
    usable = [operation for operation in operations if not operation.lacking]
    each = [[_meters(operation) for operation in usable if operation.covers(place)] for place in _places(area)]
    found = [min(here) for here in each if here]
    return Accuracy(min(found, default=inf), max(found, default=inf), is_known=len(found) >= len(each) / 2)


def _lacking_by_place(operations: Sequence[Operation], area: Extent) -> list[LackingGrid | None]:
    """The grid that each place in `area` lacks, None if it lacks none, where there is an operation at all."""
    each = ([operation for operation in operations if operation.covers(place)] for place in _places(area))
    return [_lacking(here) for here in each if here]


def operations_between(uri: str, grids: Path, one: str, other: str) -> Sequence[Operation]:
    """Return the operations between two datums. Takes some 20 milliseconds, once for each pair.

    `grids` is the directory in which PROJ finds them, and `uri` its database.
    """
    there = {file.name for file in grids.iterdir()}
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        rows = connection.execute(OPERATIONS, (one, other)).fetchall()
    operations = defaultdict[str, Operation](Operation)
    for code, part, meters, grid, name, older_name, *area in rows:
        operation = operations[code]
        operation.areas.add(tuple(area))
        operation.meters[part] = inf if meters is None else meters
        if grid and there.isdisjoint((grid, name, older_name)):
            operation.lacking.add(name or grid)
            operation.is_obtainable &= bool(name)
    return list(operations.values())


def _lacking(operations: Sequence[Operation]) -> LackingGrid | None:
    """The grid of the most accurate operation, if what is there is much less accurate.

    One that is not in PROJ's collection counts only where there is no other operation.
    """
    best = min([operation for operation in operations if operation.is_obtainable] or operations, key=_meters)
    if not best.lacking:
        return None
    meters = _meters(best)
    without = min((_meters(operation) for operation in operations if not operation.lacking), default=inf)
    if without < 2 * meters or (meters > FINE_METERS and without - meters <= GAIN_METERS):
        return None
    return LackingGrid(" and ".join(sorted(best.lacking)), meters, without)


def _meters(operation: Operation) -> float:
    return sum(operation.meters.values())


def size(area: Extent) -> float:
    """How large an area is, in square degrees."""
    west, south, east, north = area
    return (east - west + (360 if east < west else 0)) * (north - south)


def _places(area: Extent) -> Sequence[tuple[float, float]]:
    """Places that are spread evenly over `area`."""
    west, south, east, north = area
    east += 360 if east < west else 0
    shares = [(2 * number + 1) / (2 * SIDE) for number in range(SIDE)]
    places = [(west + (east - west) * x, south + (north - south) * y) for x, y in product(shares, shares)]
    return [((x + 180) % 360 - 180, y) for x, y in places]


def _contains(area: Extent, place: tuple[float, float]) -> bool:
    (west, south, east, north), (x, y) = area, place
    return south <= y <= north and (west <= x <= east if west <= east else not east < x < west)
