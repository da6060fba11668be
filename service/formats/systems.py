"""The coordinate system of the input, and that of the output."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf, isinf

import msgspec

from service.errors import Rejection
from service.formats.crs import WGS84, CrsCatalogue
from service.formats.dateline import FARTHEST
from service.formats.facts import Layer
from service.formats.format import Format, Writing, writing_of
from service.formats.grids import FINE_METERS, Extent
from service.formats.names import shown
from service.formats.request import ConversionRequest

POLE = 90.001
MERCATOR = frozenset({3395, 3785, 3857})
"""The systems whose y grows without limit towards the poles."""
MERCATOR_EDGE = 85.06
"""The latitude at which maps in Web Mercator end."""
PLAIN_NAME = re.compile(r"(?:[\w:.-]| (?:/(?= ))?){1,80}")
"""Names of systems that messages repeat, such as DHDN / Soldner: others may be paths, addresses or definitions."""
KEPT_AS_THEY_ARE = "The coordinates were written as they are, without a coordinate system."
KEEP = "; or, for a drawing or a local grid, send keepCoordinates=true{instead} to write the coordinates as they are"
"""What to do with coordinates that are in no system of the Earth."""


class Systems(msgspec.Struct, frozen=True, kw_only=True):
    """The systems of one conversion: that of the input, None for what the file records, and that of the output."""

    source_epsg: int | None
    output_epsg: int | None
    """None if there is no geometry, or if coordinates are kept unchanged."""
    keeps_coordinates: bool = False
    warnings: tuple[str, ...] = ()


def choose_systems(
    target: Format, layers: Sequence[Layer], request: ConversionRequest, catalogue: CrsCatalogue
) -> Systems:
    """Decide on the systems of a conversion (interface 9).

    Raises:
        Rejection: a system is unknown or unusable, or the coordinates cannot be in it.
    """
    writing = writing_of(target)
    source_epsg = None if request.source_epsg is None else catalogue.resolve(request.source_epsg, "sourceEpsg")
    target_epsg = catalogue.resolve(request.target_epsg, "targetEpsg")
    spatial = [layer for layer in layers if layer.is_spatial]
    if source_epsg is None and request.keep_coordinates:
        unknown = [
            layer for layer in spatial if not _is_known(layer, catalogue) or not _may_be_degrees(layer, None, catalogue)
        ]
        if unknown:
            _refuse_to_keep(target, spatial, unknown)
            return Systems(source_epsg=None, output_epsg=None, keeps_coordinates=True, warnings=(KEPT_AS_THEY_ARE,))
    for layer in spatial:
        _require_system(target, layer, source_epsg, catalogue)
    has_system = any(is_placed(writing, layer, source_epsg) for layer in layers)
    output_epsg = (writing.epsg or target_epsg) if has_system else None
    warnings = _warnings(target, output_epsg, target_epsg)
    if output_epsg is not None:
        _require_projections({source_epsg or layer.crs.epsg for layer in spatial}, output_epsg, catalogue)
        warnings += tuple(_replaced("sourceEpsg", request.source_epsg, source_epsg))
        if output_epsg == target_epsg:
            warnings += tuple(_replaced("targetEpsg", request.target_epsg, target_epsg))
        warnings += tuple(_less_accurate(spatial, source_epsg, output_epsg, catalogue))
        if source_epsg is None:
            warnings += tuple(_recorded_deprecated(spatial, catalogue))
            warnings += tuple(_unknown_datums(spatial, output_epsg, catalogue))
        high = {source_epsg or layer.crs.epsg for layer in spatial if layer.has_z}
        if writing.z:
            described = {layer.crs.heights for layer in spatial if layer.has_z and source_epsg is None}
            warnings += tuple(_kept_heights(sorted(filter(None, high)), output_epsg, catalogue))
            warnings += tuple(_described_heights(sorted(filter(None, described)), output_epsg, catalogue))
    if output_epsg is not None and not catalogue.is_geographic(output_epsg):
        in_degrees = list(_in_degrees(spatial, source_epsg, catalogue))
        warnings += tuple(_beyond_mercator(in_degrees, output_epsg))
    return Systems(source_epsg=source_epsg, output_epsg=output_epsg, warnings=warnings)


def _replaced(parameter: str, named: int | None, used: int | None) -> Iterator[str]:
    """What is made of a deprecated code that was sent: its successor, whose false origin or unit may be another."""
    if used != named:
        yield (
            f"EPSG:{named} ({parameter}) is deprecated, and its successor EPSG:{used} was used in its place. "
            "Coordinates in the two may differ."
        )


def _recorded_deprecated(spatial: Sequence[Layer], catalogue: CrsCatalogue) -> Iterator[str]:
    """The deprecated codes that a file records: its coordinates are in what they say, or in what replaced it."""
    for epsg in sorted({layer.crs.epsg for layer in spatial if layer.crs.epsg is not None}):
        successor = catalogue.successor(epsg)
        if successor != epsg:
            yield (
                f"The file is in EPSG:{epsg}, which is deprecated. Its coordinates were read in that system, but "
                f"programs may take them for those of the successor, EPSG:{successor}, which may be elsewhere. If "
                f"they are, send sourceEpsg={successor}."
            )


def is_placed(writing: Writing, layer: Layer, source_epsg: int | None) -> bool:
    """Whether a layer is written with a coordinate system: it has geometries, or the target declares those to come."""
    declares = writing.declares and layer.declared is not None and (layer.crs.known or source_epsg is not None)
    return layer.is_spatial or declares


def _refuse_to_keep(target: Format, spatial: Sequence[Layer], unknown: Sequence[Layer]) -> None:
    """Refuse to keep coordinates if the target requires a system, or if only some layers have an unknown one."""
    fixed = writing_of(target).epsg
    if fixed is not None:
        raise Rejection(
            f"{target.title} is always in EPSG:{fixed}, so coordinates of an unknown system cannot be kept in it. Send "
            "their EPSG code as sourceEpsg, or choose another outputFormat, such as GeoPackage or DXF."
        )
    if len(unknown) < len(spatial):
        known = next(layer for layer in spatial if layer not in unknown)
        raise Rejection(
            f"The system of {shown(unknown[0].name)!r} is unknown and that of {shown(known.name)!r} is not, so "
            "keepCoordinates cannot apply to both. Name one of them in the field layer."
        )


def _require_system(target: Format, layer: Layer, source_epsg: int | None, catalogue: CrsCatalogue) -> None:
    """Refuse a layer in an unknown system, and numbers that cannot be the degrees that they are said to be."""
    if not _is_known(layer, catalogue) and source_epsg is None:
        named = f"{layer.crs.name!r}" if PLAIN_NAME.fullmatch(layer.crs.name) else "a system of its own"
        if layer.crs.known:
            reason = f"The coordinates are in EPSG:{layer.crs.epsg}, which does not say where on the Earth they are."
        elif layer.crs.name:
            reason = f"The file says that its coordinates are in {named}, which is not a known system."
        else:
            reason = f"The file does not record the coordinate system of {shown(layer.name)!r}."
        raise Rejection(
            f"{reason} Send its EPSG code as sourceEpsg, for example 4326 for longitude and latitude{_keep(target)}."
        )
    if layer.extent is not None and not _may_be_degrees(layer, source_epsg, catalogue):
        west, south, east, north = layer.extent
        raise Rejection(
            f"Coordinates of {shown(layer.name)!r} range from {west:g}, {south:g} to {east:g}, {north:g}: these are "
            f"not degrees, which EPSG:{source_epsg or layer.crs.epsg} requires. The first are in feature "
            f"{layer.first_beyond_degrees:,}. {_remedy(target, layer, source_epsg, catalogue)}."
        )


def _is_known(layer: Layer, catalogue: CrsCatalogue) -> bool:
    """Whether the system that a file records says where positions are."""
    return layer.crs.known and (layer.crs.epsg is None or catalogue.has_positions(layer.crs.epsg))


def _require_projections(sources: Iterable[int | None], output_epsg: int, catalogue: CrsCatalogue) -> None:
    """Refuse to transform from or to a system whose projection PROJ has yet to learn."""
    remedies = dict.fromkeys(filter(None, sources), "Transform the file to EPSG:5514 first") | {
        output_epsg: "Choose targetEpsg 5514, which has the unmodified one"
    }
    for epsg, remedy in remedies.items():
        if len(remedies) > 1 and not catalogue.computes(epsg):
            raise Rejection(
                f"EPSG:{epsg} has a projection, Modified Krovak, that PROJ computes from version 9.4 on, and this host "
                f"has an older one. {remedy}, or ask the operator to update PROJ."
            )


def _remedy(target: Format, layer: Layer, source_epsg: int | None, catalogue: CrsCatalogue) -> str:
    """What to do about coordinates that are not the degrees that the file, or the client, says they are."""
    if source_epsg is None:
        return f"Correct it, or send their EPSG code as sourceEpsg{_keep(target)}"
    if not _is_known(layer, catalogue) or not _may_be_degrees(layer, None, catalogue):
        return f"Correct it, or send another code as sourceEpsg{_keep(target, ' instead of sourceEpsg')}"
    recorded = "" if layer.crs.epsg is None else f", EPSG:{layer.crs.epsg}"
    return f"Send no sourceEpsg, because the file records its system{recorded}; or send another code"


def _keep(target: Format, instead: str = "") -> str:
    """The remedy for drawings, unless the target is always in one system."""
    return "" if writing_of(target).epsg is not None else KEEP.format(instead=instead)


def is_projected(target: Format, request: ConversionRequest, catalogue: CrsCatalogue) -> bool:
    """Whether the output is in a projection: for degrees, warnings depend on where they lie then."""
    return not catalogue.is_geographic(writing_of(target).epsg or request.target_epsg)


def _in_degrees(
    spatial: Sequence[Layer], source_epsg: int | None, catalogue: CrsCatalogue
) -> Iterator[tuple[str, tuple[float, float, float, float]]]:
    """The names and extents of the layers in degrees whose extent is known."""
    for layer in spatial:
        system = source_epsg or layer.crs.epsg
        if system is not None and layer.extent is not None and catalogue.is_geographic(system):
            yield shown(layer.name), layer.extent


def _less_accurate(
    spatial: Sequence[Layer], source_epsg: int | None, output_epsg: int, catalogue: CrsCatalogue
) -> Iterator[str]:
    """What PROJ does if it knows no transformation between two datums, or lacks the grid of the best (interface 9)."""
    extents = defaultdict[int, list[Extent]](list)
    for layer in spatial:
        source = source_epsg or layer.crs.epsg
        if source is not None:
            extents[source] += [layer.extent] if layer.extent and catalogue.is_geographic(source) else []
    for source, each in sorted(extents.items()):
        grid = catalogue.lacking_grid(source, output_epsg, _around(each))
        accuracy = catalogue.accuracy(source, output_epsg, _around(each))
        is_known = accuracy is None or accuracy.is_known or grid is not None
        if not is_known or not catalogue.relates(source, output_epsg):
            where = "" if is_known else " for most of these places"
            name = grid.name if grid else catalogue.defining_grid(source, output_epsg)
            yield (
                f"No transformation between the datums of EPSG:{source} and EPSG:{output_epsg} is known{where}, so "
                "they were treated as the same: places may be off by hundreds of meters. If you know the "
                f"transformation for your area, apply it first; or choose a targetEpsg with the datum of EPSG:{source}."
            ) + (f" The operator may install the grid {name}, which is for such transformations." if name else "")
        elif grid is not None:
            few = "by one or two meters" if catalogue.are_modern(source, output_epsg) else "by several meters or more"
            without = few if isinf(grid.meters_without) else f"by {grid.meters_without:g} m"
            yield (
                f"Places may be off {without}. They would be accurate to {grid.meters:g} m with the grid {grid.name} "
                f"for transformations from EPSG:{source} to EPSG:{output_epsg}, which is not installed here. If that "
                "matters, transform the file with this grid first, or ask the operator to install it."
            )
        elif accuracy is not None and FINE_METERS < accuracy.worst < inf:
            best, worst = (f"{meters:g}" for meters in (accuracy.best, accuracy.worst))
            meters = worst if best == worst else f"between {best} and {worst}"
            yield (
                f"Transformations from EPSG:{source} to EPSG:{output_epsg} are accurate to {meters} m, so places may "
                f"be off by as much. If that matters, choose a targetEpsg with the datum of EPSG:{source}."
            )


def _unknown_datums(spatial: Sequence[Layer], output_epsg: int, catalogue: CrsCatalogue) -> Iterator[str]:
    """What PROJ does with datums of which it knows nothing but the ellipsoid."""
    named = {layer.crs.datum.name: layer.crs.datum for layer in spatial if layer.crs.datum}
    for name, datum in sorted(named.items()):
        if not catalogue.knows_datum(datum):
            yield (
                f"The datum {shown(name)!r} of the file is unknown, so it was treated as that of EPSG:{output_epsg}: "
                "places may be off by hundreds of meters. If the system of the file has an EPSG code, send it as "
                "sourceEpsg."
            )


def _around(extents: Sequence[Extent]) -> Extent | None:
    """The extent of all of them, None without any."""
    if not extents:
        return None
    west, south, east, north = zip(*extents, strict=True)
    return min(west), min(south), max(east), max(north)


def _kept_heights(sources: Sequence[int], output_epsg: int, catalogue: CrsCatalogue) -> Iterator[str]:
    """What becomes of elevations of which a system says what they are, unless they are transformed or stay the same."""
    for source in sources:
        old, new = catalogue.heights(source), catalogue.heights(output_epsg)
        if old and new and not catalogue.relates_heights(source, output_epsg):
            yield (
                f"No transformation from {old!r} (EPSG:{source}) to {new!r} (EPSG:{output_epsg}) is known here, so "
                "elevations were kept unchanged, except for their unit: they may be off by tens of meters. Choose a "
                f"targetEpsg with {old!r}, or transform them first."
            )
        elif old and not new and catalogue.is_compound(source):
            yield (
                f"Elevations were kept unchanged: they are {old!r} in EPSG:{source}, and EPSG:{output_epsg}, the "
                "system of the result, does not define them."
            )
        elif new and not old:
            yield (
                f"Elevations were kept unchanged: EPSG:{source} does not define them, and EPSG:{output_epsg}, the "
                f"system of the result, defines them as {new!r}."
            )


def _described_heights(described: Sequence[str], output_epsg: int, catalogue: CrsCatalogue) -> Iterator[str]:
    """What is told of elevations of which a file says what they are, but not by a code."""
    new = catalogue.heights(output_epsg)
    for old in described:
        if new:
            yield (
                f"Elevations are {shown(old)!r}, as the file describes them, and {new!r} in EPSG:{output_epsg}, the "
                "system of the result. Whether they were transformed is unknown: they may be off by tens of meters. "
                "Transform them first, or choose a targetEpsg without heights."
            )
        else:
            yield (
                f"Elevations were kept unchanged: they are {shown(old)!r}, as the file describes them, and "
                f"EPSG:{output_epsg}, the system of the result, does not define them."
            )


def _beyond_mercator(
    in_degrees: Sequence[tuple[str, tuple[float, float, float, float]]], output_epsg: int
) -> Iterator[str]:
    """What Mercator's projection does to latitudes near the poles."""
    for name, (_, south, _, north) in in_degrees:
        if output_epsg in MERCATOR and (south < -MERCATOR_EDGE or north > MERCATOR_EDGE):
            yield (
                f"{name!r} has latitudes from {south:g} to {north:g}. In EPSG:{output_epsg}, those beyond "
                f"{MERCATOR_EDGE} degrees are outside the usual map, and their coordinates grow without limit towards "
                "the poles. Cut them there, or choose another targetEpsg."
            )


def _may_be_degrees(layer: Layer, source_epsg: int | None, catalogue: CrsCatalogue) -> bool:
    """Whether coordinates are in the range of degrees, or their system does not use degrees."""
    system = source_epsg or layer.crs.epsg
    if system is None or layer.extent is None or not catalogue.is_in_degrees(system):
        return True
    west, south, east, north = layer.extent
    return south >= -POLE and north <= POLE and west >= -FARTHEST and east <= FARTHEST


def _warnings(target: Format, output_epsg: int | None, target_epsg: int) -> tuple[str, ...]:
    if output_epsg is None or output_epsg == target_epsg == WGS84:
        return ()
    if output_epsg != target_epsg:
        return (f"{target.title} is always written in EPSG:{output_epsg}; targetEpsg {target_epsg} was not used.",)
    if not writing_of(target).records_crs:
        return (f"{target.title} records no coordinate system; the coordinates are in EPSG:{output_epsg}.",)
    return ()
