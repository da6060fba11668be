"""Text of form fields and queries to typed values; what is wrong is named (interface 7.1)."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from starlette.datastructures import Headers, QueryParams

from service.errors import InvalidParameter
from service.formats.names import shown
from service.formats.request import DEFAULT_EPSG, ConversionRequest
from service.http.api.inputs import DEFAULT_JOBS, IDEMPOTENCY_KEY, MAX_DIGITS, MAX_IDEMPOTENCY_KEY, MOST_JOBS
from service.intake.form import Form

_KEY = re.compile(IDEMPOTENCY_KEY.schema["pattern"])
MOST_UNKNOWN = 20
MAX_NAME = 100
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def read_conversion(fields: Mapping[str, tuple[str, ...]]) -> ConversionRequest:
    """Read what a single-file conversion asks for (interface 4.1); an empty field is as good as none.

    Raises:
        InvalidParameter: a code is no whole number, a field stands there twice, or one of a pair is missing.
    """
    target = _epsg(fields, "targetEpsg")
    return ConversionRequest(
        output=_text(fields, "outputFormat"),
        target_epsg=DEFAULT_EPSG if target is None else target,
        source_epsg=_epsg(fields, "sourceEpsg"),
        layer=_text(fields, "layer"),
        **_table_wishes(fields),
    )


def read_batch(fields: Mapping[str, tuple[str, ...]], files: int) -> list[ConversionRequest]:
    """Read what a batch asks for, one request for each of its `files` (interface 4.2).

    Raises:
        InvalidParameter: a code is no whole number, or there are more formats or codes than files.
    """
    outputs = _aligned(fields, "outputFormats", files)
    sources = _aligned(fields, "sourceEpsgs", files)
    target = _epsg(fields, "targetEpsg")
    tables = _table_wishes(fields)
    return [
        ConversionRequest(
            output=output or None,
            target_epsg=DEFAULT_EPSG if target is None else target,
            source_epsg=_number("sourceEpsgs", source) if source else None,
            **tables,
        )
        for output, source in zip(outputs, sources, strict=True)
    ]


def read_idempotency_key(headers: Headers) -> str | None:
    """Read the header Idempotency-Key (interface 3).

    Raises:
        InvalidParameter: it is empty, too long, or has other characters than printable ASCII.
    """
    key = headers.get("idempotency-key")
    if key is None:
        return None
    if len(key) > MAX_IDEMPOTENCY_KEY or not _KEY.fullmatch(key):
        raise InvalidParameter(
            "Idempotency-Key",
            f"The header Idempotency-Key must have 1 to {MAX_IDEMPOTENCY_KEY} printable ASCII characters.",
        )
    return key


def wants_async(headers: Headers) -> bool:
    """Whether the header Prefer asks for an answer as soon as the upload is accepted (RFC 7240, interface 3)."""
    preferences = ",".join(headers.getlist("prefer")).split(",")
    return any(preference.split(";")[0].strip().lower() == "respond-async" for preference in preferences)


def read_include_wallet(fields: Mapping[str, tuple[str, ...]]) -> bool:
    """Read includeWallet, false where it is absent.

    Raises:
        InvalidParameter: it is no boolean.
    """
    return _boolean(fields, "includeWallet")


def unknown_fields(form: Form, known: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each field of `form` that means nothing here, with the nearest of the `known` names."""
    names = {name.casefold(): name for name in known}
    return tuple(_unknown_field(name, names) for name in form.unknown_fields[:MOST_UNKNOWN])


def _unknown_field(untrusted_name: str, names: Mapping[str, str]) -> str:
    near = get_close_matches(untrusted_name.casefold()[:MAX_NAME], names, n=1)
    hint = f"; did you mean {names[near[0]]}?" if near else "."
    return f"The field {shown(untrusted_name)} is not known here and was ignored{hint}"


def _table_wishes(fields: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The columns of a table that hold its geometry, and what becomes of coordinates of an unknown system."""
    x, y, z, wkt = (_text(fields, name) for name in ("xField", "yField", "zField", "wktField"))
    if (x is None) != (y is None):
        missing = "yField" if y is None else "xField"
        raise InvalidParameter(missing, "xField and yField name a pair of columns; send both.")
    if wkt is not None and (x is not None or z is not None):
        raise InvalidParameter(
            "wktField", "wktField names the whole geometry; send it without xField, yField and zField."
        )
    if z is not None and x is None:
        raise InvalidParameter("zField", "zField goes with xField and yField; send all three.")
    keeps = _boolean(fields, "keepCoordinates")
    return {"x_field": x, "y_field": y, "z_field": z, "wkt_field": wkt, "keep_coordinates": keeps}


def _boolean(fields: Mapping[str, tuple[str, ...]], name: str) -> bool:
    text = _text(fields, name)
    if text is None:
        return False
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise InvalidParameter(name, f"{name} must be true or false.")
    return value


def read_limit(query: QueryParams, *, default: int = DEFAULT_JOBS, most: int = MOST_JOBS) -> int:
    """Read `limit` of a list (interface 4.7, 7.1).

    Raises:
        InvalidParameter: it is no whole number within its bounds.
    """
    text = query.get("limit")
    if text is None:
        return default
    if not _is_number(text) or not 1 <= int(text) <= most:
        raise InvalidParameter("limit", f"limit must be a whole number from 1 to {most}.")
    return int(text)


def _text(fields: Mapping[str, tuple[str, ...]], name: str) -> str | None:
    values = fields.get(name, ())
    if len(values) > 1:
        raise InvalidParameter(name, f"{name} stands in the form {len(values)} times; send it once.")
    return values[0].strip() or None if values else None


def _aligned(fields: Mapping[str, tuple[str, ...]], name: str, files: int) -> list[str]:
    values = [value.strip() for value in fields.get(name, ())]
    if len(values) > files:
        raise InvalidParameter(name, f"The form has {len(values)} {name} for {files} files; send at most one for each.")
    return values + [""] * (files - len(values))


def _epsg(fields: Mapping[str, tuple[str, ...]], name: str) -> int | None:
    text = _text(fields, name)
    return _number(name, text) if text is not None else None


def _number(name: str, text: str) -> int:
    if not _is_number(text):
        raise InvalidParameter(name, f"{name} must be a whole number: the EPSG code of a coordinate system, as 4326.")
    return int(text)


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS
