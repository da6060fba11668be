"""Converts GeoParquet's native encodings (GeoArrow) to WKB. Runs in the sandbox."""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

DEPTHS = {"point": 0, "linestring": 1, "multipoint": 1, "polygon": 2, "multilinestring": 2, "multipolygon": 3}
"""How many levels of lists surround a coordinate."""
CODES = {"point": 1, "linestring": 2, "polygon": 3, "multipoint": 4, "multilinestring": 5, "multipolygon": 6}
PARTS = {"multipoint": "point", "multilinestring": "linestring", "multipolygon": "polygon"}
Z_STEP = 1000
AXES = ("x", "y", "z")
EDGES = {"Geometry": "planar", "Geography": "spherical"}
"""What edges are in Parquet's own types of geometries."""


NAME, METADATA, PREFIX = b"ARROW:extension:name", b"ARROW:extension:metadata", "geoarrow."


def declared_columns(schema: Any) -> dict[str, dict[str, Any]]:
    """The geometry columns that the fields of an Arrow schema declare, as GeoParquet would describe them."""
    columns = {}
    for field in schema:
        extension = field.metadata or {}
        encoding = extension.get(NAME, b"").decode().removeprefix(PREFIX)
        if encoding == "wkb" or (encoding in DEPTHS and _has_axes(field.type, DEPTHS[encoding])):
            said = json.loads(extension.get(METADATA) or b"{}")
            columns[field.name] = {"encoding": encoding, "crs": said.get("crs"), "edges": said.get("edges") or "planar"}
    return columns


def logical_columns(file: Any) -> dict[str, dict[str, Any]]:
    """The columns of Parquet's own types of geometries, as GeoParquet would describe them."""
    columns = {}
    for column in map(file.schema.column, range(len(file.schema.names))):
        said = json.loads(column.logical_type.to_json())
        if said.get("Type") in EDGES and column.path in file.schema_arrow.names:
            edges = said.get("algorithm") or EDGES[said["Type"]]
            columns[column.path] = {"encoding": "wkb", "edges": edges, **_logical_crs(said.get("crs"), file)}
    return columns


def _logical_crs(said: Any, file: Any) -> dict[str, Any]:
    """The system of a column of Parquet's own types; the default of GeoParquet, which is theirs, if they name none."""
    if not said:
        return {}
    kind, _, name = said.partition(":") if isinstance(said, str) else ("", "", "")
    if kind == "srid":
        return {"crs": f"EPSG:{name}" if int(name) else None}
    if kind == "projjson":
        said = file.metadata.metadata[name.encode()].decode()
    return {"crs": json.loads(said) if isinstance(said, str) and said.lstrip().startswith("{") else said}


def _has_axes(kind: Any, depth: int) -> bool:
    """Whether coordinates are x, y and perhaps z: members of a structure, or lists of numbers, as GeoPandas has them.

    Parquet files do not keep the name of the numbers, which is xy or xyz; three of them are then taken for the latter.
    """
    for _ in range(depth):
        kind = getattr(kind, "value_type", None)
    if hasattr(kind, "list_size"):
        return (kind.list_size, kind.value_field.name) in {(2, "xy"), (3, "xyz"), (2, "element"), (3, "element")}
    names = [kind.field(place).name for place in range(getattr(kind, "num_fields", 0))]
    return names in (["x", "y"], ["x", "y", "z"])


def to_wkb(value: Any, encoding: str) -> bytes | None:
    """`value`, nested lists of coordinates as Arrow returns them, as WKB."""
    if value is None or (encoding == "point" and _numbers(value)[0] is None):
        return None
    has_z = len(_numbers(_first(value, DEPTHS[encoding]))) == len(AXES)
    return _encoded(value, encoding, has_z=has_z)


Coordinate = Mapping[str, float] | Sequence[float]
"""By the names of the axes, or in their order."""


def _first(value: Any, depth: int) -> Coordinate:
    for _ in range(depth):
        if not value:
            return {}
        value = value[0]
    found: Coordinate = value
    return found


def _encoded(value: Any, encoding: str, *, has_z: bool) -> bytes:
    head = struct.pack("<BI", 1, CODES[encoding] + (Z_STEP if has_z else 0))
    if encoding == "point":
        return head + _coordinates([value])
    head += struct.pack("<I", len(value))
    if encoding == "linestring":
        return head + _coordinates(value)
    if encoding == "polygon":
        return head + b"".join(struct.pack("<I", len(ring)) + _coordinates(ring) for ring in value)
    return head + b"".join(_encoded(part, PARTS[encoding], has_z=has_z) for part in value)


def _coordinates(points: Sequence[Coordinate]) -> bytes:
    values = [number for point in points for number in _numbers(point)]
    return struct.pack(f"<{len(values)}d", *values)


def _numbers(point: Coordinate) -> list[float]:
    """The numbers that WKB has, without a measure."""
    return [point[name] for name in AXES if name in point] if isinstance(point, Mapping) else list(point)
