"""The options that tell drivers the geometry type of a dataset: by type, "" for mixed, "None" for a table."""

from collections.abc import Mapping

from service.formats.geometry import FAMILIES, NO_GEOMETRY

EXACT_TYPES: Mapping[str, tuple[str, ...]] = {
    name: ("-nlt", f"{name.upper()}{{z}}", "-dim", "XY{z}") for name in FAMILIES
} | {"": ("-nlt", "GEOMETRY{z}", "-dim", "XY{z}"), NO_GEOMETRY: ("-nlt", "NONE")}
"""For drivers that accept any type: the declared one, with Z in its name, since `-dim` alone may drop it."""
MULTI_TYPES: Mapping[str, tuple[str, ...]] = {
    "Point": ("-nlt", "POINT{z}", "-dim", "XY{z}"),
    "MultiPoint": ("-nlt", "MULTIPOINT{z}", "-dim", "XY{z}"),
    **dict.fromkeys(("LineString", "MultiLineString"), ("-nlt", "MULTILINESTRING{z}", "-dim", "XY{z}")),
    **dict.fromkeys(("Polygon", "MultiPolygon"), ("-nlt", "MULTIPOLYGON{z}", "-dim", "XY{z}")),
    NO_GEOMETRY: ("-nlt", "NONE"),
}
SHAPE_TYPES: Mapping[str, tuple[str, ...]] = {
    "Point": ("-lco", "SHPT=POINT{z}"),
    "MultiPoint": ("-lco", "SHPT=MULTIPOINT{z}", "-nlt", "MULTIPOINT{z}"),
    **dict.fromkeys(("LineString", "MultiLineString"), ("-lco", "SHPT=ARC{z}")),
    **dict.fromkeys(("Polygon", "MultiPolygon"), ("-lco", "SHPT=POLYGON{z}")),
    NO_GEOMETRY: ("-lco", "SHPT=POINT"),
}
"""A table becomes null shapes: without .shp and .shx, it could not be detected as a shapefile again."""
