"""The coordinate system of a GeoJSON document: WGS 84, unless an old member `crs` says otherwise."""

import re
from typing import Any

from service.geojson.findings import WGS84

_EPSG = re.compile(r"(?:urn:ogc:def:crs:)?EPSG:(?:[0-9.]*:)?([0-9]{4,6})", re.IGNORECASE)
_CRS84 = re.compile(r"urn:ogc:def:crs:OGC:(?:1\.3)?:CRS84", re.IGNORECASE)


def crs_epsg(member: Any) -> int | None:
    """The EPSG code that the member `crs` names; a null or absent member means WGS 84.

    Returns:
        The code, or None if it is not written in one of the usual forms.
    """
    if member is None:
        return WGS84
    properties = member.get("properties") if isinstance(member, dict) else None
    name = properties.get("name") if isinstance(properties, dict) else None
    if not isinstance(name, str):
        return None
    if _CRS84.fullmatch(name):
        return WGS84
    epsg = _EPSG.fullmatch(name)
    return int(epsg.group(1)) if epsg else None
