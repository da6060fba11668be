"""The default coordinate system of GeoParquet."""

from typing import Any

WGS84_CODES = {("EPSG", "4326"), ("OGC", "CRS84")}
CRS84: dict[str, Any] = {
    "$schema": "https://proj.org/schemas/v0.5/projjson.schema.json",
    "type": "GeographicCRS",
    "name": "WGS 84 longitude-latitude",
    "datum": {
        "type": "GeodeticReferenceFrame",
        "name": "World Geodetic System 1984",
        "ellipsoid": {"name": "WGS 84", "semi_major_axis": 6378137, "inverse_flattening": 298.257223563},
    },
    "coordinate_system": {
        "subtype": "ellipsoidal",
        "axis": [
            {"name": "Geodetic longitude", "abbreviation": "Lon", "direction": "east", "unit": "degree"},
            {"name": "Geodetic latitude", "abbreviation": "Lat", "direction": "north", "unit": "degree"},
        ],
    },
    "id": {"authority": "OGC", "code": "CRS84"},
}
"""Longitude, then latitude, like the coordinates; the default system of GeoParquet."""


def identifier(crs: dict[str, Any]) -> tuple[str, str]:
    """Authority and code of a system given as PROJJSON."""
    found = crs.get("id") or {}
    return str(found.get("authority")), str(found.get("code"))
