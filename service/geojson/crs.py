"""The coordinate system of a GeoJSON document: WGS 84, unless an old member `crs` says otherwise."""

import re
from typing import Any

from service.geojson.findings import WGS84

_EPSG = re.compile(r"(?:urn:ogc:def:crs:)?EPSG:(?:[0-9.]*:)?([0-9]{4,6})", re.IGNORECASE)
_WGS84 = re.compile(
    r"urn:ogc:def:crs:OGC:(?:1\.3)?:CRS84|(?:OGC:)?CRS84|https?://www\.opengis\.net/def/crs/OGC/[0-9.]*/CRS84"
    r"|https?://www\.opengis\.net/(?:def/crs/EPSG/[0-9.]*/|gml/srs/epsg\.xml#)4326|4326|WGS[ _]?84|GCS_WGS_1984",
    re.IGNORECASE,
)
"""The default itself, in forms that the converter may not know, so that it assumes the same."""
_TEXTS = ("name", "code", "urn", "href", "url")


def crs_name(member: Any) -> str:
    """The text with which the member `crs` names a system; "" if it names none."""
    if isinstance(member, str):
        return member
    outer = member if isinstance(member, dict) else {}
    inner = outer.get("properties")
    texts = [place.get(name) for place in (inner, outer) if isinstance(place, dict) for name in _TEXTS]
    return next((str(text) for text in texts if text and isinstance(text, str | int)), "")


def crs_epsg(member: Any) -> int | None:
    """The EPSG code that the member `crs` names; a null or absent member means WGS 84.

    Returns:
        The code, or None if it is not written in one of the usual forms, in which the converter reads the same.
    """
    if member is None:
        return WGS84
    name = crs_name(member).strip()
    found = _EPSG.fullmatch(name)
    epsg = int(found.group(1)) if found else None
    if epsg == WGS84 or _WGS84.fullmatch(name):
        return WGS84
    return epsg if _is_name(member) else None


def _is_name(member: Any) -> bool:
    """Whether the member is of the only type in which the converter reads names."""
    if not isinstance(member, dict) or str(member.get("type")).casefold() != "name":
        return False
    properties = member.get("properties")
    return isinstance(properties, dict) and isinstance(properties.get("name"), str)
