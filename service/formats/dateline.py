"""Geometries at the date line: which are to be cut there, and which the converter's cutting would harm."""

from service.formats.facts import Layer
from service.formats.format import Writing

DATELINE = 180.0
SIMPLE = frozenset({"Point", "LineString", "Polygon"})
FARTHEST = 540.0
"""Longitudes may go around once more than the Earth does, to cross the date line in one piece."""


def is_to_be_cut(layer: Layer) -> bool:
    """Whether `layer` is to be cut: GDAL loses the points of collections when it cuts, so never those."""
    return not _has_points_in_collections(layer) and not is_within_datelines(layer)


def is_harmed_by_cutting(layer: Layer) -> bool:
    """Whether a writer that always cuts would harm `layer`.

    It loses the points of collections, and makes simple geometries of Multi ones that have one part.
    """
    has_parts = any(name.startswith("Multi") for name in layer.geometry_types)
    return _has_points_in_collections(layer) or (has_parts and is_within_datelines(layer))


def is_cut_blindly(writing: Writing, layer: Layer) -> bool:
    """Whether it is not known enough of `layer` to tell if cutting, which the target asks for, would harm it."""
    cuts = writing.wraps_dateline or bool(writing.lines_driver)
    return cuts and layer.extent is None and any(name not in SIMPLE for name in layer.geometry_types)


def is_within_datelines(layer: Layer) -> bool:
    """Whether x is known to stay within the date lines; what is far beyond them is no degrees."""
    if layer.extent is None:
        return False
    west, _, east, _ = layer.extent
    return (west >= -DATELINE and east <= DATELINE) or max(-west, east) > FARTHEST


def _has_points_in_collections(layer: Layer) -> bool:
    return "MultiPoint" in layer.collection_parts
