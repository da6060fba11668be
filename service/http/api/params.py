"""Text of form fields and queries to typed values; what is wrong is named (interface 7.1)."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from starlette.datastructures import Headers, QueryParams

from service.errors import InvalidParameter
from service.formats.names import shown
from service.formats.request import ConversionRequest
from service.http.api.inputs import (
    BATCH,
    CONVERSION,
    IDEMPOTENCY_KEY,
    INCLUDE_WALLET,
    LIMIT,
    Field,
    UploadForm,
    read_number,
)
from service.intake.form import Form

Fields = Mapping[str, tuple[str, ...]]
"""The text parts of a form, by their names."""

_KEY = re.compile(IDEMPOTENCY_KEY.schema["pattern"])
MOST_UNKNOWN = 20
MAX_NAME = 100


def read_conversion(fields: Fields) -> ConversionRequest:
    """Read what a single-file conversion asks for (interface 4.1); an empty field is as good as none.

    Raises:
        InvalidParameter: a code is no whole number, a field stands there twice, or one of a pair is missing.
    """
    return _request(CONVERSION, fields, 0, 1)


def read_batch(fields: Fields, files: int) -> list[ConversionRequest]:
    """Read what a batch asks for, one request for each of its `files` (interface 4.2).

    Raises:
        InvalidParameter: a code is no whole number, or there are more formats or codes than files.
    """
    return [_request(BATCH, fields, number, files) for number in range(files)]


def read_include_wallet(fields: Fields) -> bool:
    """Read includeWallet, false where it is absent.

    Raises:
        InvalidParameter: it is no boolean.
    """
    return bool(_value(INCLUDE_WALLET, fields, 0, 1))


def read_idempotency_key(headers: Headers) -> str | None:
    """Read the header Idempotency-Key (interface 3).

    Raises:
        InvalidParameter: it is empty, too long, or has other characters than printable ASCII.
    """
    key = headers.get("idempotency-key")
    if key is None:
        return None
    longest: int = IDEMPOTENCY_KEY.schema["maxLength"]
    if len(key) > longest or not _KEY.fullmatch(key):
        message = f"The header {IDEMPOTENCY_KEY.name} must have 1 to {longest} printable ASCII characters."
        raise InvalidParameter(IDEMPOTENCY_KEY.name, message)
    return key


def wants_async(headers: Headers) -> bool:
    """Whether the header Prefer asks for an answer as soon as the upload is accepted (RFC 7240, interface 3)."""
    preferences = ",".join(headers.getlist("prefer")).split(",")
    return any(preference.split(";")[0].strip().lower() == "respond-async" for preference in preferences)


def unknown_fields(form: Form, known: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each field of `form` that means nothing here, with the nearest of the `known` names."""
    names = {name.casefold(): name for name in known}
    return tuple(_unknown_field(name, names) for name in form.unknown_fields[:MOST_UNKNOWN])


def _unknown_field(untrusted_name: str, names: Mapping[str, str]) -> str:
    near = get_close_matches(untrusted_name.casefold()[:MAX_NAME], names, n=1)
    hint = f"; did you mean {names[near[0]]}?" if near else "."
    return f"The field {shown(untrusted_name)} is not known here and was ignored{hint}"


def read_limit(query: QueryParams) -> int:
    """Read `limit` of a list (interface 4.7, 7.1).

    Raises:
        InvalidParameter: it is no whole number within its bounds.
    """
    least, most, default = (LIMIT.schema[name] for name in ("minimum", "maximum", "default"))
    text = query.get(LIMIT.name)
    number = default if text is None else read_number(text)
    if number is None or not least <= number <= most:
        raise InvalidParameter(LIMIT.name, f"{LIMIT.name} must be a whole number from {least} to {most}.")
    return int(number)


def _request(form: UploadForm, fields: Fields, number: int, files: int) -> ConversionRequest:
    """Read what is asked for the file with `number` out of `files`; what is not asked for has its default."""
    read = {field.wish: _value(field, fields, number, files) for field in form.fields if field.wish}
    wishes: dict[str, Any] = {wish: value for wish, value in read.items() if value is not None}
    _check_columns(wishes)
    return ConversionRequest(**wishes)


def _value(field: Field, fields: Fields, number: int, files: int) -> object:
    """Return the value that a field has for one of the files; None where it is absent or blank."""
    texts, name = fields.get(field.name, ()), field.name
    if field.many and len(texts) > files:
        raise InvalidParameter(name, f"The form has {len(texts)} {name} for {files} files; send at most one for each.")
    if not field.many and len(texts) > 1:
        raise InvalidParameter(name, f"{name} stands in the form {len(texts)} times; send it once.")
    place = number if field.many else 0
    text = texts[place].strip() if place < len(texts) else ""
    if not text:
        return None
    value = field.kind.read(text)
    if value is None:
        raise InvalidParameter(name, f"{name} {field.kind.complaint}")
    return value


def _check_columns(wishes: Mapping[str, Any]) -> None:
    """See that columns of a table are named as `inputs.TABLE_RULES` says: a pair, or one for the whole geometry."""
    x, y, z, wkt = (name in wishes for name in ("x_field", "y_field", "z_field", "wkt_field"))
    if x != y:
        raise InvalidParameter("yField" if x else "xField", "xField and yField name a pair of columns; send both.")
    if wkt and (x or z):
        message = "wktField names the whole geometry; send it without xField, yField and zField."
        raise InvalidParameter("wktField", message)
    if z and not x:
        raise InvalidParameter("zField", "zField goes with xField and yField; send all three.")
