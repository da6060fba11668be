"""Reads form fields, queries and headers into typed values; errors name the parameter (interface 7.1)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from difflib import get_close_matches
from typing import Any

from starlette.datastructures import Headers, QueryParams

from service.errors import InvalidParameter
from service.formats.names import shown
from service.formats.request import ConversionRequest
from service.http.api import inputs
from service.intake.form import Form

Fields = Mapping[str, tuple[str, ...]]
"""The text parts of a form, by name."""

_KEY = re.compile(inputs.IDEMPOTENCY_KEY.schema["pattern"])
MOST_UNKNOWN = 20
MAX_NAME = 100


def read_conversion(fields: Fields) -> ConversionRequest:
    """Read the fields of a single-file conversion (interface 4.1); empty fields are ignored.

    Raises:
        InvalidParameter: a code is not a whole number, a field is repeated, or one of a pair is missing.
    """
    return _request(inputs.CONVERSION, fields, 0, 1)


def read_batch(fields: Fields, files: int) -> list[ConversionRequest]:
    """Read the fields of a batch into one request per file of `files` (interface 4.2).

    Raises:
        InvalidParameter: a code is not a whole number, or there are more formats or codes than files.
    """
    return [_request(inputs.BATCH, fields, number, files) for number in range(files)]


def read_include_wallet(fields: Fields) -> bool:
    """Read includeWallet; false if it is absent.

    Raises:
        InvalidParameter: it is not a boolean.
    """
    return bool(_value(inputs.INCLUDE_WALLET, fields.get(inputs.INCLUDE_WALLET.name, ()), 0, 1))


def read_idempotency_key(headers: Headers) -> str | None:
    """Read the header Idempotency-Key (interface 3).

    Raises:
        InvalidParameter: it is repeated, empty, too long, or contains characters other than printable ASCII.
    """
    keys = headers.getlist("idempotency-key")
    if not keys:
        return None
    if len(keys) > 1:  # of two, a retry might change the one that counts
        message = f"The header {inputs.IDEMPOTENCY_KEY.name} occurs {len(keys)} times; send it once."
        raise InvalidParameter(inputs.IDEMPOTENCY_KEY.name, message)
    key = keys[0]
    longest: int = inputs.IDEMPOTENCY_KEY.schema["maxLength"]
    if len(key) > longest or not _KEY.fullmatch(key):
        message = f"The header {inputs.IDEMPOTENCY_KEY.name} must have 1 to {longest} printable ASCII characters."
        raise InvalidParameter(inputs.IDEMPOTENCY_KEY.name, message)
    return key


def wants_async(headers: Headers) -> bool:
    """Whether the header Prefer requests a response as soon as the upload is accepted (RFC 7240, interface 3)."""
    preferences = ",".join(headers.getlist("prefer")).split(",")
    return any(preference.split(";")[0].strip().lower() == "respond-async" for preference in preferences)


def ignored_fields(query: QueryParams, form: Form, known: Iterable[str]) -> tuple[str, ...]:
    """A warning for each unknown field of `form`, with the most similar `known` name, and for known ones in `query`."""
    names = {name.casefold(): name for name in known}
    unknown = [_unknown_field(name, names) for name in form.unknown_fields[:MOST_UNKNOWN]]
    misplaced = [names[name.casefold()] for name in query if name.casefold() in names]
    return (*unknown, *(f"{name} in the query was ignored; send it as a field of the form." for name in misplaced))


def _unknown_field(untrusted_name: str, names: Mapping[str, str]) -> str:
    near = get_close_matches(untrusted_name.casefold()[:MAX_NAME], names, n=1)
    hint = f"; did you mean {names[near[0]]}?" if near else "."
    return f"The field {shown(untrusted_name)} is unknown and was ignored{hint}"


def read_download(query: QueryParams, headers: Headers) -> bool:
    """Read `download` of a single conversion (interface 4.1); false if it is absent.

    Raises:
        InvalidParameter: it is not a boolean, or the client does not want to wait for the result.
    """
    download = inputs.read_boolean(query.get(inputs.DOWNLOAD.name, ""))
    if download is None:
        raise InvalidParameter(inputs.DOWNLOAD.name, f"{inputs.DOWNLOAD.name} must be true or false.")
    if download and wants_async(headers):
        message = (
            "download=true responds with the result, and Prefer: respond-async before there is one. Send one of them."
        )
        raise InvalidParameter(inputs.DOWNLOAD.name, message)
    return download


def refuse_download(query: QueryParams) -> None:
    """Refuse `download` where a request has several results.

    Raises:
        InvalidParameter: it is not false.
    """
    if inputs.read_boolean(query.get(inputs.DOWNLOAD.name, "")) is not False:
        message = "A batch has several results. Download each by its link, or convert the files one at a time."
        raise InvalidParameter(inputs.DOWNLOAD.name, message)


def read_only_open(query: QueryParams) -> bool:
    """Whether `only` limits the deletion of a job to an open one (interface 4.8).

    Raises:
        InvalidParameter: it has another value.
    """
    states, only = inputs.ONLY.schema["enum"], query.get(inputs.ONLY.name)
    if only is not None and only not in states:
        raise InvalidParameter(inputs.ONLY.name, f"{inputs.ONLY.name} must be {' or '.join(states)}, or be omitted.")
    return only is not None


def read_days(query: QueryParams, today: date) -> tuple[date, date]:
    """Read `from` and `to` of a usage report: by default the month of the last day so far (interface 10).

    Raises:
        InvalidParameter: one of them is not a day, or they are in the wrong order.
    """
    last = _day(inputs.LAST_DAY, query) or today
    first = _day(inputs.FIRST_DAY, query) or last.replace(day=1)
    if first > last:
        raise InvalidParameter(inputs.FIRST_DAY.name, "from must not be after to.")
    return first, last


def _day(parameter: inputs.Parameter, query: QueryParams) -> date | None:
    text = query.get(parameter.name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidParameter(parameter.name, f"{parameter.name} must be a day, such as 2026-05-31.") from None


def read_bounded(parameter: inputs.Parameter, query: QueryParams) -> int:
    """Read a whole number, such as `limit` of a list or `wait` of a job's status (interface 4.6, 4.7, 7.1).

    Raises:
        InvalidParameter: it is not a whole number within its bounds.
    """
    least, most, default = (parameter.schema[name] for name in ("minimum", "maximum", "default"))
    text = query.get(parameter.name)
    number = default if text is None else inputs.read_number(text)
    if number is None or not least <= number <= most:
        raise InvalidParameter(parameter.name, f"{parameter.name} must be a whole number from {least} to {most}.")
    return int(number)


def read_search(query: QueryParams) -> str:
    """Read `search` of the coordinate systems (interface 4.11).

    Raises:
        InvalidParameter: it is too long.
    """
    text, most = query.get(inputs.SEARCH.name, ""), inputs.SEARCH.schema["maxLength"]
    if len(text) > most:
        raise InvalidParameter(inputs.SEARCH.name, f"{inputs.SEARCH.name} must have at most {most} characters.")
    return text


def _request(form: inputs.UploadForm, fields: Fields, number: int, files: int) -> ConversionRequest:
    """Read the request for the file with `number` out of `files`; absent fields have their defaults."""
    sent = [field for field in form.fields if field.wish and field.name in fields]
    read = {field.wish: _value(field, fields[field.name], number, files) for field in sent}
    wishes: dict[str, Any] = {wish: value for wish, value in read.items() if value is not None}
    _check_columns(wishes)
    return ConversionRequest(**wishes)


def _value(field: inputs.FormField, texts: Sequence[str], number: int, files: int) -> object:
    """Return the value for one of the files of a field sent as `texts`; None if there is none or it is blank."""
    name = field.name
    if field.many and len(texts) > files:
        raise InvalidParameter(name, f"The form has {len(texts)} {name} for {files} files; send at most one per file.")
    if not field.many and len(texts) > 1:
        raise InvalidParameter(name, f"{name} occurs {len(texts)} times in the form; send it once.")
    place = number if field.many else 0
    text = texts[place].strip() if place < len(texts) else ""
    if not text:
        return None
    value = field.kind.read(text)
    if value is None:
        raise InvalidParameter(name, f"{name} {field.kind.complaint}")
    return value


def _check_columns(wishes: Mapping[str, Any]) -> None:
    """Check the columns against `inputs.TABLE_RULES`: either a pair, or one for the whole geometry."""
    x, y, z, wkt = (name in wishes for name in ("x_field", "y_field", "z_field", "wkt_field"))
    if x != y:
        raise InvalidParameter("yField" if x else "xField", "xField and yField must be sent together.")
    if wkt and (x or z):
        message = "wktField names the whole geometry; send it without xField, yField and zField."
        raise InvalidParameter("wktField", message)
    if z and not x:
        raise InvalidParameter("zField", "zField requires xField and yField; send all three.")
