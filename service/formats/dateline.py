"""Geometries at the date line: which ones must be cut there, and which ones the converter's cutting would damage."""

from service.formats.facts import Layer
from service.formats.format import Writing

DATELINE = 180.0
SIMPLE = frozenset({"Point", "LineString", "Polygon"})
FARTHEST = 540.0
"""Longitudes may exceed 180 by another turn, so that a geometry can cross the date line in one piece."""


def is_to_be_cut(layer: Layer) -> bool:
    """Whether to cut `layer`. Never cut points in collections: GDAL loses them."""
    return not _has_points_in_collections(layer) and not is_within_datelines(layer)


def is_harmed_by_cutting(layer: Layer) -> bool:
    """Whether a writer that always cuts would damage `layer`.

    Cutting loses the points of collections, and turns Multi geometries with one part into simple ones.
    """
    has_parts = any(name.startswith("Multi") for name in layer.geometry_types)
    return _has_points_in_collections(layer) or (has_parts and is_within_datelines(layer))


def is_cut_blindly(writing: Writing, layer: Layer) -> bool:
    """Whether too little is known of `layer` to tell if the cutting that the target requires would damage it."""
    cuts = writing.wraps_dateline or bool(writing.lines_driver)
    return cuts and layer.extent is None and any(name not in SIMPLE for name in layer.geometry_types)


def is_within_datelines(layer: Layer) -> bool:
    """Whether x is known to stay within the date lines; values far beyond them are not degrees."""
    if layer.extent is None:
        return False
    west, _, east, _ = layer.extent
    return (west >= -DATELINE and east <= DATELINE) or max(-west, east) > FARTHEST


def _has_points_in_collections(layer: Layer) -> bool:
    return "MultiPoint" in layer.collection_parts
