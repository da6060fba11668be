"""Which EPSG codes are coordinate systems for maps, according to PROJ's own database (interface 9)."""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from math import isclose
from pathlib import Path

import msgspec

from service.errors import Rejection
from service.formats.crs_database import (
    RELATED,
    RELATED_HEIGHTS,
    are_related,
    datum_names,
    defined_by,
    plain,
    plane_systems,
    related,
    system_with,
    version,
)
from service.formats.facts import Datum
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
MODERN_AXIS = 6378137
"""The semi-major axis of the ellipsoids of modern datums, in meters."""
ALIKE_METERS = 10
"""Datums whose ellipsoids differ less are modern ones, which differ by a few meters at most."""
SAME_ELLIPSOID = 1e-10
"""How far the axes and flattenings of ellipsoids may be apart, in relation to them, to be one to PROJ."""
MODIFIED_KROVAK, MODIFIED_KROVAK_SINCE = frozenset({5224, 5225, 5515, 5516}), (9, 4)
"""Systems of the projection that PROJ's database has had longer than PROJ itself, and the version that computes it."""
GEOGRAPHIC_TYPES = frozenset({"geographic 2D", "geographic 3D"})
PLANE_TYPES = frozenset({"geographic 2D", "projected"})
HIGH_TYPES = frozenset({"geographic 3D", "compound"})
MAP_TYPES = PLANE_TYPES | HIGH_TYPES
PLACED_TYPES = MAP_TYPES | {"geocentric", "other"}
MOST_FOUND = 20
MOST_WORDS = 8
USUAL = ("wgs 84", "etrs89", "nad83", "gda2020")
"""Families of systems that users search for most."""
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
        uri, grids = f"{database.resolve().as_uri()}?mode=ro&immutable=1", database.parent
        self._version = cache(partial(version, uri))
        self._datum_names = cache(partial(datum_names, uri))
        self._every = cache(partial(_every, uri))
        self._system = lru_cache(REMEMBERED)(partial(system_with, uri))
        self._related = cache(partial(related, uri, grids))
        self._defined_by = cache(partial(defined_by, uri, grids))
        self._operations = lru_cache(REMEMBERED)(partial(operations_between, uri, grids))
        self._datums = lru_cache(REMEMBERED)(self._datums_of)
        self.depends_on_place = lru_cache(REMEMBERED)(self._depends_on_place)

    def is_geographic(self, epsg: int) -> bool:
        """Whether the coordinates of `epsg` are degrees of longitude and latitude, or the like."""
        return self._system(epsg).kind in GEOGRAPHIC_TYPES

    def is_in_degrees(self, epsg: int) -> bool:
        """Whether its horizontal coordinates are such, also beside the heights of a compound system."""
        system = self._system(epsg)
        return (system.horizontal_kind or system.kind) in GEOGRAPHIC_TYPES

    def has_positions(self, epsg: int) -> bool:
        """Whether coordinates in `epsg` are positions on the Earth: not so of heights, and of systems of a site."""
        kind = self._system(epsg).kind
        return not kind or kind in PLACED_TYPES

    def is_plane(self, epsg: int) -> bool:
        """Whether `epsg` has two axes."""
        return self._system(epsg).kind in PLANE_TYPES

    def is_compound(self, epsg: int) -> bool:
        """Whether `epsg` says what elevations are, beside a system of two axes."""
        return self._system(epsg).kind == "compound"

    def has_heights(self, epsg: int) -> bool:
        """Whether positions in `epsg` have three numbers, of which the third is a height."""
        return self._system(epsg).kind in HIGH_TYPES

    def has(self, epsg: int) -> bool:
        """Whether there is a coordinate system with this code."""
        return bool(self._system(epsg).kind)

    def computes(self, epsg: int) -> bool:
        """Whether PROJ knows the projection of `epsg`."""
        return epsg not in MODIFIED_KROVAK or self._version() >= MODIFIED_KROVAK_SINCE

    def ends_at_date_line(self, epsg: int) -> bool:
        """Whether this is a system for maps of the world from one side of the date line to the other.

        Others, also those of the poles, are continuous there.
        """
        areas = self._system(epsg).areas
        return any(east - west == FULL_CIRCLE and south < 0 < north for west, south, east, north in areas)

    def nears_edges(self, epsg: int) -> bool:
        """Whether a part of the area of `epsg` is near the date line or a pole, and the system is continuous there."""
        return not self.ends_at_date_line(epsg) and any(
            west > east or max(-west, east) > NEAR_DATE_LINE or max(-south, north) > NEAR_POLE
            for west, south, east, north in self._system(epsg).areas
        )

    def covers(self, epsg: int, extent: tuple[float, float, float, float]) -> bool:
        """Whether `extent`, in degrees, is within an area for which `epsg` is made."""
        x_min, y_min, x_max, y_max = extent
        return any(
            west <= x_min and x_max <= east and south <= y_min and y_max <= north
            for west, south, east, north in self._system(epsg).areas
        )

    def has_other_lengths(self, epsg: int) -> bool:
        """Whether the horizontal coordinates of `epsg` are lengths in another unit than meters, such as feet."""
        return self._system(epsg).unit != 1

    def reach(self, epsg: int) -> tuple[float, float]:
        """The least and the greatest x at which `epsg` is of use, in its unit; infinite if its projection has no limit.

        Transverse Mercator is the projection with one that PROJ computes exactly far beyond its zone.
        """
        return self._system(epsg).reach

    def share_datum(self, one: int, other: int) -> bool:
        """Whether no datum changes between two systems, so that a transformation there and back is exact."""
        return self._system(one).base == self._system(other).base != ""

    def relates(self, one: int, other: int) -> bool:
        """Whether PROJ can change between the datums of two systems with the grids of this host, or by way of another.

        It takes datums for the same if it cannot. Those of modern systems count as related, since they nearly are the
        same, unless a grid defines one. The first question about different datums takes some 20 milliseconds.
        """
        if len(datums := self._datums(one, other)) < 2:  # noqa: PLR2004 -- both
            return True
        if self.are_modern(one, other) and not self.defining_grid(one, other):
            return True
        return are_related(self._related(RELATED), *datums)

    def are_modern(self, one: int, other: int) -> bool:
        """Whether the datums of two systems nearly are the same, by their ellipsoids."""
        axes = self._datums(one, other).values()
        return max(axes, default=0) - min(axes, default=0) < ALIKE_METERS

    def defining_grid(self, one: int, other: int) -> str:
        """The grid that alone relates one of two datums to others, if not even PROJ's collection has it; or "".

        The intermediate frames of British railways are such: they bend the Earth along a line.
        """
        known = self._defined_by()
        return next((known[datum] for datum in self._datums(one, other) if datum in known), "")

    def knows_datum(self, datum: Datum) -> bool:
        """Whether PROJ knows what a datum of this name is, or its ellipsoid says that it is a modern one.

        PROJ finds no transformation if a datum of this name has another ellipsoid, or if the prime meridian is
        Greenwich and the datum has another one, such as Ferro.
        """
        return abs(datum.axis - MODERN_AXIS) < ALIKE_METERS or any(
            (is_of_greenwich or datum.meridian != 0)
            and isclose(axis, datum.axis, rel_tol=SAME_ELLIPSOID)
            and (flattening is None or isclose(flattening, datum.flattening, rel_tol=SAME_ELLIPSOID))
            for is_of_greenwich, axis, flattening in self._datum_names().get(plain(datum.name), ())
        )

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
        datums = self._datums(one, other)
        return self._operations(*sorted(datums)) if len(datums) == 2 else ()  # noqa: PLR2004 -- both

    def _common_area(self, one: int, other: int) -> Extent | None:
        """The area of both systems: that of the one with the smaller area, as far as EPSG knows."""
        return min((area for epsg in (one, other) for area in self._system(epsg).areas[:1]), key=size, default=None)

    def _datums_of(self, one: int, other: int) -> dict[str, float]:
        """The datums of two systems, if they have one, and the greater axes of their ellipsoids."""
        return dict(datum for epsg in (one, other) if (datum := self._system(epsg).datum) is not None)

    def heights(self, epsg: int) -> str | None:
        """What elevations in the system `epsg` are, as 'EGM96 height'; None if it does not say."""
        heights = self._system(epsg).heights
        return heights and heights[0]

    def relates_heights(self, one: int, other: int) -> bool:
        """Whether PROJ can transform elevations between two systems with the grids of this host, or has no need to.

        If it cannot, it changes nothing but their unit. The first question about different ones takes 30 milliseconds.
        """
        datums = {heights[1] for epsg in (one, other) if (heights := self._system(epsg).heights) is not None}
        return len(datums) < 2 or are_related(self._related(RELATED_HEIGHTS), *datums)  # noqa: PLR2004 -- both

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
        system = self._system(epsg)
        if not system.kind:
            raise Rejection(
                f"EPSG:{epsg} ({parameter}) is not a known coordinate system. Codes are listed at https://epsg.io; "
                "4326 (WGS 84) is the default."
            )
        if system.kind not in MAP_TYPES:
            raise Rejection(
                f"EPSG:{epsg} ({parameter}, {system.name}) is of the type {system.kind!r} and cannot hold a map. "
                "Choose a geographic or projected one, such as 4326 or 3857."
            )
        return self.successor(epsg)

    def successor(self, epsg: int) -> int:
        """The code that replaces `epsg` if it is deprecated and has one successor, otherwise itself."""
        successors = self._system(epsg).successors
        return successors[0] if len(successors) == 1 else epsg


@cache
def catalogue_of(database: Path) -> CrsCatalogue:
    """Return the catalogue of a database, the same to all who ask: it remembers what it has looked up."""
    return CrsCatalogue(database)


def _every(uri: str) -> list[_Entry]:
    systems = plane_systems(uri)
    return [_Entry(epsg, name, area, f"{epsg} {name} {area}".casefold()) for epsg, name, area in systems]
