"""One feature of a GeoJSON document as the converter sees it, however it was written."""

import json
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from service.geojson.members import geometry_member, member
from service.geojson.refusals import Reason, Unreadable

INT64_MAX = (1 << 63) - 1
INT64_DIGITS = 19

NOT_PROPERTIES = frozenset({"type", "geometry", "centroid", "bbox", "center"})
"""Members of a feature that never become columns, even if it has no member `properties`."""


class Geometry(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A geometry with undecoded coordinates. The type None marks a value that is not a geometry."""

    type: Any = None
    coordinates: Raw = Raw()
    geometries: Raw = Raw()
    bbox: Raw | UnsetType = UNSET
    crs: Any = None


class Feature(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A feature. Absent members are UNSET; all members other than these are foreign to GeoJSON."""

    type: Any = None
    id: Any = UNSET
    properties: Any = UNSET
    geometry: Geometry | UnsetType | None = UNSET
    bbox: Raw | UnsetType = UNSET
    crs: Any = None
    """The coordinate system of a feature, which is not part of GeoJSON either: only a document names one."""


def lenient_decode(text: str) -> tuple[Any, int]:
    """Decode the JSON value at the start of `text`, accepting what the converter accepts.

    This includes NaN and infinities, control characters in texts, and numbers of any size.

    Returns:
        The value and its end position.

    Raises:
        json.JSONDecodeError: it is not JSON.
        Unreadable: it is nested too deeply.
    """
    try:
        return _LENIENT.raw_decode(text)
    except RecursionError:
        raise Unreadable(Reason.TOO_DEEP) from None


def normalized(value: dict[str, Any]) -> Feature:
    """The feature that the converter reads from `value`, a leniently decoded element of `features`."""
    geometry = geometry_member(value)
    return Feature(
        type=value.get("type", UNSET),
        id=member(value, "id"),
        properties=_properties(value),
        geometry=None if geometry is None or geometry is UNSET else geometry_of(geometry),
        crs=_given(member(value, "crs")),
    )


def geometry_of(value: Any) -> Geometry:
    """The geometry that the converter reads from `value`, a leniently decoded object."""
    if not isinstance(value, dict):
        return Geometry()
    return Geometry(
        type=member(value, "type"),
        coordinates=_raw(member(value, "coordinates")),
        geometries=_raw(member(value, "geometries")),
        crs=_given(member(value, "crs")),
    )


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    """The members that become columns: those of `properties`, or of the feature itself if it has none."""
    properties = member(feature, "properties")
    if isinstance(properties, dict):
        return properties
    if properties is None or properties == []:
        return {}
    return {name: value for name, value in feature.items() if name not in NOT_PROPERTIES}


def _raw(value: Any) -> Raw:
    return Raw() if value is UNSET else Raw(json.dumps(value).encode())


def _given(value: Any) -> Any:
    return None if value is UNSET else value


def integer(digits: str) -> int:
    """An integer clamped to just beyond 64 bits, so that many digits cannot cost time."""
    if len(digits.lstrip("-").lstrip("0")) <= INT64_DIGITS:
        return int(digits)
    return -INT64_MAX - 2 if digits.startswith("-") else INT64_MAX + 1


_LENIENT = json.JSONDecoder(strict=False, parse_int=integer)
