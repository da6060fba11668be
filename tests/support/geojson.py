"""Builds GeoJSON documents as text, valid and not."""

import json
from typing import Any

from service.formats.facts import Flaw, Occurrence
from service.geojson.findings import Scan

POINT = {"type": "Point", "coordinates": [1.5, 2.5]}
LINE = {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}
POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [0, 1], [1, 1], [0, 0]]]}


def geometry(kind: str, coordinates: Any) -> dict[str, Any]:
    """A geometry with coordinates."""
    return {"type": kind, "coordinates": coordinates}


def gathered(*members: Any) -> dict[str, Any]:
    """A GeometryCollection."""
    return {"type": "GeometryCollection", "geometries": list(members)}


def feature(properties: Any = None, geometry: Any = POINT, **members: Any) -> dict[str, Any]:
    """A feature."""
    return {"type": "Feature", **members, "properties": properties or {}, "geometry": geometry}


def collection(*features: Any, **members: Any) -> bytes:
    """A FeatureCollection as bytes; members of the collection come before its features."""
    return json.dumps({"type": "FeatureCollection", **members, "features": list(features)}).encode()


def with_value(value: str) -> bytes:
    """A collection of one point whose property `a` is spelled exactly as `value`."""
    return collection(feature({"a": "VALUE"})).replace(b'"VALUE"', value.encode("utf-8", "surrogateescape"))


def flaw(scan: Scan, kind: Flaw) -> Occurrence:
    """How often a flaw was found in a document, and where first."""
    return scan.flaws.get(kind, Occurrence())
