"""Text of form fields and queries to typed values; what is wrong is named (contract 1)."""

import re
from collections.abc import Mapping

from starlette.datastructures import Headers, QueryParams

from service.errors import InvalidParameter
from service.formats.request import DEFAULT_EPSG, ConversionRequest
from service.http.inputs import DEFAULT_JOBS, IDEMPOTENCY_KEY, MAX_DIGITS, MAX_IDEMPOTENCY_KEY, MOST_JOBS

_KEY = re.compile(IDEMPOTENCY_KEY.schema["pattern"])
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def read_conversion(fields: Mapping[str, tuple[str, ...]]) -> ConversionRequest:
    """Read what a single-file conversion asks for (specification 4.1); an empty field is as good as none.

    Raises:
        InvalidParameter: a code is no whole number, or a field stands there twice.
    """
    target = _epsg(fields, "targetEpsg")
    return ConversionRequest(
        output=_text(fields, "outputFormat"),
        target_epsg=DEFAULT_EPSG if target is None else target,
        source_epsg=_epsg(fields, "sourceEpsg"),
        layer=_text(fields, "layer"),
    )


def read_batch(fields: Mapping[str, tuple[str, ...]], files: int) -> list[ConversionRequest]:
    """Read what a batch asks for, one request for each of its `files` (specification 4.2).

    Raises:
        InvalidParameter: a code is no whole number, or there are more formats or codes than files.
    """
    outputs = _aligned(fields, "outputFormats", files)
    sources = _aligned(fields, "sourceEpsgs", files)
    target = _epsg(fields, "targetEpsg")
    return [
        ConversionRequest(
            output=output or None,
            target_epsg=DEFAULT_EPSG if target is None else target,
            source_epsg=_number("sourceEpsgs", source) if source else None,
        )
        for output, source in zip(outputs, sources, strict=True)
    ]


def read_idempotency_key(headers: Headers) -> str | None:
    """Read the header Idempotency-Key (contract 3).

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
    """Whether the header Prefer asks for an answer as soon as the upload is accepted (RFC 7240, contract 3)."""
    preferences = ",".join(headers.getlist("prefer")).split(",")
    return any(preference.split(";")[0].strip().lower() == "respond-async" for preference in preferences)


def read_include_wallet(fields: Mapping[str, tuple[str, ...]]) -> bool:
    """Read includeWallet, false where it is absent.

    Raises:
        InvalidParameter: it is no boolean.
    """
    text = _text(fields, "includeWallet")
    if text is None:
        return False
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise InvalidParameter("includeWallet", "includeWallet must be true or false.")
    return value


def read_limit(query: QueryParams, *, default: int = DEFAULT_JOBS, most: int = MOST_JOBS) -> int:
    """Read `limit` of a list (specification 4.7, contract 1).

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
