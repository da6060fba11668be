"""Small data sets that tests convert."""

import json
import struct
from typing import Any

LAKES = [
    ("Titicaca", 3812, (-69.35, -15.82)),
    ("Ladoga", 5, (31.5, 60.85)),
    ("Vänern", 44, (13.3, 58.9)),
]
JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""How a journal of SQLite begins; then comes the number of its records."""


def feature(geometry: dict[str, Any] | None, **properties: object) -> dict[str, Any]:
    """A GeoJSON feature."""
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def collection(*features: dict[str, Any]) -> bytes:
    """A GeoJSON document."""
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False).encode()


def point(x: float, y: float) -> dict[str, Any]:
    """A point."""
    return {"type": "Point", "coordinates": [x, y]}


def lakes() -> bytes:
    """Three points with two attributes, one of them not ASCII."""
    return collection(*(feature(point(*where), name=name, elevation=height) for name, height, where in LAKES))


def lengthy(features: int) -> bytes:
    """A document that keeps a converter busy; its features, of 180 bytes each, are identical."""
    text = json.dumps(feature(point(45, 22), n=100_000, text="x" * 50)).encode()
    return b'{"type": "FeatureCollection", "features": [' + b", ".join([text] * features) + b"]}"


def bare_points(count: int) -> bytes:
    """A .shp of points, which a converter reads for long, although it is small and quickly made."""
    records = b"".join(struct.pack(">2i", number, 10) + struct.pack("<i2d", 1, 45, 22) for number in range(count))
    header = struct.pack(">i20xi", 9994, 50 + len(records) // 2) + struct.pack("<2i4d32x", 1000, 1, 45, 22, 45, 22)
    return header + records


def square(size: float = 1.0) -> dict[str, Any]:
    """A polygon."""
    return {"type": "Polygon", "coordinates": [[[0, 0], [size, 0], [size, size], [0, size], [0, 0]]]}
