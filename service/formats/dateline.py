"""Geometries at the date line: which ones must be cut there, and which ones the converter's cutting would damage."""

from service.formats.crs import CrsCatalogue
from service.formats.facts import Layer
from service.formats.format import Writing
from service.formats.geometry import Family

DATELINE = 180.0
POLE = 90.0
ROUNDING = 1e-9
"""By how many degrees coordinates at the date line may exceed it because of rounding."""
SIMPLE = frozenset({"Point", "LineString", "Polygon"})
FARTHEST = 540.0
"""Longitudes may exceed 180 by another turn, so that a geometry can cross the date line in one piece."""
WIDE, WIDE_METERS, HALF_WORLD_METERS = 350.0, 3e7, 20_037_509.0
"""Writers that cut take lines wider than this for ones across the date line."""


def is_to_be_cut(layer: Layer, *, is_wound: bool) -> bool:
    """Whether to cut `layer`. Never cut points in collections: GDAL loses them."""
    return not _has_points_in_collections(layer) and (is_wound or not is_within_datelines(layer, ROUNDING))


def has_parts_beyond(writing: Writing, layer: Layer) -> bool:
    """Whether parts of geometries may lie beyond the date line; a writer that cuts would add empty ones for them."""
    cuts = writing.wraps_dateline or bool(writing.lines_driver)
    has_parts = layer.extent is not None and not layer.geometry_types.keys() <= SIMPLE
    return cuts and has_parts and not is_within_datelines(layer, ROUNDING)


def is_harmed_by_cutting(layer: Layer) -> bool:
    """Whether a writer that always cuts would damage `layer`.

    Cutting loses the points of collections, turns Multi geometries with one part into simple ones, and makes parts
    without length or area of what exceeds the date line by rounding.
    """
    has_parts = any(name.startswith("Multi") for name in layer.geometry_types)
    may_exceed = not is_within_datelines(layer, -ROUNDING)  # extents may be rounded, too
    return _has_points_in_collections(layer) or (is_within_datelines(layer, ROUNDING) and (has_parts or may_exceed))


def may_be_wound(layer: Layer) -> bool:
    """Whether edges of `layer` may be wider than half of the map; the shortest way then crosses the date line."""
    if not layer.is_spatial or layer.families == {Family.POINT}:
        return False
    return layer.extent is None or layer.extent[2] - layer.extent[0] > DATELINE


def spans_map(layer: Layer, source: int | None, catalogue: CrsCatalogue) -> bool:
    """Whether lines of `layer` may span the map of the world: a writer that always cuts would leave only their ends."""
    if layer.extent is None or layer.families == {Family.POINT}:
        return False
    west, _, east, _ = layer.extent
    if source is not None and not catalogue.is_in_degrees(source):
        is_world = catalogue.ends_at_date_line(source) and max(-west, east) <= HALF_WORLD_METERS
        return is_world and east - west > WIDE_METERS
    return is_within_datelines(layer, ROUNDING) and east - west > WIDE


def is_cut_blindly(writing: Writing, layer: Layer) -> bool:
    """Whether too little is known of `layer` to tell if the cutting that the target requires would damage it."""
    cuts = writing.wraps_dateline or bool(writing.lines_driver)
    return cuts and layer.extent is None and any(name not in SIMPLE for name in layer.geometry_types)


def is_within_datelines(layer: Layer, beyond: float = 0.0) -> bool:
    """Whether x is known to stay within the date lines, or so little `beyond`; values far beyond are not degrees."""
    if layer.extent is None:
        return False
    west, _, east, _ = layer.extent
    return max(-west, east) <= DATELINE + beyond or max(-west, east) > FARTHEST


def may_be_cut(layer: Layer, source: int | None, output: int, catalogue: CrsCatalogue) -> bool:
    """Whether the converter may cut areas of `layer` at the date line or a pole, into several parts.

    GDAL 3.6 does so from a projection that is continuous there to degrees.
    """
    if not catalogue.is_in_degrees(output):
        return False
    if source is None:
        return layer.extent is not None and max(map(abs, layer.extent)) > FARTHEST
    return not catalogue.is_in_degrees(source) and catalogue.nears_edges(source)


def is_to_be_cut_there(layer: Layer, source: int | None, output: int, catalogue: CrsCatalogue) -> bool:
    """Whether to cut what lies across an edge that the map of `source` lacks; cutting harms Multi geometries."""
    return layer.geometry_types.keys() <= SIMPLE and may_be_cut(layer, source, output, catalogue)


def is_on_map(layer: Layer) -> bool:
    """Whether x and y are known to be longitudes and latitudes of a map of the world."""
    if layer.extent is None:
        return False
    west, south, east, north = layer.extent
    return max(-west, east) <= DATELINE and max(-south, north) <= POLE


def _has_points_in_collections(layer: Layer) -> bool:
    return "MultiPoint" in layer.collection_parts
