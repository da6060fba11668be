"""Converts Arrow columns to types that a GeoPackage can hold. Runs in the sandbox."""

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
UTC = "UTC"
NO_OFFSET = "+00:00"
NAMES_OF_UTC = re.compile(r"(Etc/)?(UTC|UCT|GMT|Zulu)|Z")
DAY, LAST_SECOND = 86_400, 59
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, as days since 1970."""
OFFSET = re.compile(r"[+-]\d\d:(00|15|30|45)")
"""The offsets from UTC that the driver of GeoPackage writes; it drops other zones and keeps their local times."""
Convert = Callable[[pa.Array], pa.Array]


def storage(values: pa.Array) -> pa.Array:
    """The plain array inside an extension array."""
    return getattr(values, "storage", values)


def _decoded(values: pa.Array) -> pa.Array:
    values = storage(values)
    return values.dictionary_decode() if types.is_dictionary(values.type) else values


def former_type(kind: Any) -> str:
    """What `plain` changes columns of the type `kind` from, as `FormerType` calls it; "" if it keeps the type."""
    kind = getattr(kind, "storage_type", kind)
    if types.is_dictionary(kind):
        kind = kind.value_type
    return next((name for name, applies in _FORMER_TYPES.items() if applies(kind)), "")


def plain(values: pa.Array, binary: Convert) -> pa.Array:
    """`values` as a type that a GeoPackage column can hold; `binary` converts bytes."""
    if _is_uuid(values.type):
        return mapped(storage(values), lambda value: str(UUID(bytes=value)))
    values = _decoded(values)
    if _span(values):
        values = pc.if_else(_is_held(values), values, pa.scalar(None, values.type))
    for applies, convert in (*_CONVERSIONS, (_is_binary, lambda same: binary(same.cast(pa.binary())))):
        if applies(values.type):
            return convert(values)
    return values


def _is_binary(kind: Any) -> bool:
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _is_text(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _without_zeros(values: pa.Array) -> pa.Array:
    return pc.replace_substring(values.cast(pa.string()), "\0", "") if count_zeros(values) else values.cast(pa.string())


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _to_json(values: pa.Array) -> pa.Array:
    for change in (_in_known_zone, _spelled_time):
        values = values.cast(_with_leaves(values.type, change))
    return mapped(values, _json_of)


def _in_known_zone(kind: Any) -> Any:
    """The type of the same moments with an offset; there is no database of zones with names."""
    is_named = types.is_timestamp(kind) and kind.tz and not OFFSET.fullmatch(kind.tz)
    return pa.timestamp(kind.unit, NO_OFFSET) if is_named else kind


def _spelled_time(kind: Any) -> Any:
    """Text in place of dates and times: Python's have neither nanoseconds nor years beyond 9999."""
    return pa.string() if types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind) else kind


def _with_leaves(kind: Any, change: Callable[[Any], Any]) -> Any:
    """The type `kind` with others in place of those of the values in its lists and structures."""
    if types.is_struct(kind):
        return pa.struct([field.with_type(_with_leaves(field.type, change)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_with_leaves(kind.key_type, change), _with_leaves(kind.item_type, change))
    if types.is_fixed_size_list(kind):
        return pa.list_(_with_leaves(kind.value_type, change), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return (pa.list_ if types.is_list(kind) else pa.large_list)(_with_leaves(kind.value_type, change))
    return change(kind)


def _json_of(value: Any) -> str:
    """The JSON of a list or structure; numbers that JSON does not have are null."""
    text = json.dumps(value, ensure_ascii=False, default=_spelled)
    if "NaN" in text or "Infinity" in text:
        text = json.dumps(_of_finite(value), ensure_ascii=False, default=_spelled)
    return text


def _of_finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _of_finite(each) for name, each in value.items()}
    return list(map(_of_finite, value)) if isinstance(value, list | tuple) else value


def _spelled(value: Any) -> str:
    """A value that JSON has no notation for."""
    return value.hex().upper() if isinstance(value, bytes) else str(value)


def _to_durations(values: pa.Array) -> pa.Array:
    """Durations in ISO 8601; Python's objects for them would lose nanoseconds."""
    per_second = PER_SECOND[values.type.unit]
    return mapped(values.cast(pa.int64()), lambda count: f"PT{Decimal(count) / per_second:f}S")


def to_periods(values: pa.Array) -> pa.Array:
    """The months, days and milliseconds of Parquet's INTERVAL, each of 32 bits, in ISO 8601."""
    return mapped(values, lambda value: _period(*struct.unpack("<III", value)))


def _period(months: int, days: int, milliseconds: int) -> str:
    parts = [f"{months}M" if months else "", f"{days}D" if days else ""]
    seconds = Decimal(milliseconds) / PER_SECOND["ms"]
    return f"P{''.join(parts)}" + (f"T{seconds:f}S" if milliseconds or not any(parts) else "")


def mapped(values: pa.Array, text: Callable[[Any], str]) -> pa.Array:
    """The texts that `text` makes of `values`."""
    return pa.array([None if value is None else text(value) for value in values.to_pylist()], pa.string())


def without_late_fractions(values: pa.Array) -> tuple[pa.Array, list[tuple[int, int]]]:
    """`values`, without the fractions that make the driver write another minute.

    It takes the fraction of a second before 1970 from the next whole one, and so loses what is left of a minute's last.
    Returns also these fractions: each with its place in `values`, and in milliseconds.
    """
    if not types.is_timestamp(values.type):
        return values, []
    moments = values.cast(pa.int64()).cast(pa.timestamp(values.type.unit))
    seconds = pc.floor_temporal(moments, unit="second")
    is_last = pc.equal(pc.second(moments), LAST_SECOND)
    is_late = pc.and_(pc.and_(is_last, pc.less(moments, pa.scalar(0, moments.type))), pc.greater(moments, seconds))
    places = pc.indices_nonzero(is_late)
    if not len(places):
        return values, []
    whole = pc.if_else(is_late, seconds, moments).cast(pa.int64()).cast(values.type)
    fractions = pc.take(pc.subtract(moments, seconds), places).cast(pa.duration("ms")).cast(pa.int64())
    return whole, list(zip(places.to_pylist(), fractions.to_pylist(), strict=True))


def count_moved(values: pa.Array) -> int:
    """How many of `values` are times of other zones that become the same moments in UTC."""
    values = storage(values)
    if not types.is_timestamp(values.type) or _written_zone(values.type.tz) == values.type.tz:
        return 0
    return 0 if NAMES_OF_UTC.fullmatch(values.type.tz) else len(values) - int(values.null_count)


def _written_zone(zone: str | None) -> str | None:
    return zone if zone is None or OFFSET.fullmatch(zone) else UTC


def count_rounded(values: pa.Array) -> int:
    """How many of `values`, decimals or timestamps, a GeoPackage cannot hold exactly."""
    values = storage(values)
    if types.is_decimal(values.type):
        numbers = values.drop_null().to_pylist()
        return sum(Decimal(repr(float(number))) != number for number in numbers)  # as it is written again
    if not types.is_timestamp(values.type):
        return 0
    kept = plain(values, lambda same: same).cast(values.type, safe=False)
    return int(pc.sum(pc.not_equal(values, kept)).as_py() or 0)


def count_unheld(values: pa.Array) -> int:
    """How many of `values` are dates or times that are not of the years 1 to 9999, and become missing."""
    values = storage(values)
    return len(values) - int(values.null_count) - int(pc.sum(_is_held(values)).as_py() or 0) if _span(values) else 0


def _span(values: pa.Array) -> tuple[int, int] | None:
    """The first and the last value of the years 1 to 9999, as times are written; None if there are no dates in it."""
    kind = values.type
    if types.is_date32(kind):
        return FIRST_DAY, LAST_DAY
    if types.is_date64(kind):
        return FIRST_DAY * DAY * 1000, LAST_DAY * DAY * 1000
    if not types.is_timestamp(kind):
        return None
    offset = OFFSET.fullmatch(kind.tz or "")
    shift = (int(offset[0][:3]) * 60 + int(offset[0][0] + offset[1])) * 60 if offset else 0
    per_second = PER_SECOND[kind.unit]
    most = 2**63 - 1
    first, last = (FIRST_DAY * DAY - shift) * per_second, ((LAST_DAY + 1) * DAY - shift) * per_second - 1
    return max(first, -most), min(last, most)


def _is_held(values: pa.Array) -> pa.Array:
    first, last = (pa.scalar(bound, pa.int64()) for bound in _span(values) or ())
    counts = values.cast(pa.int32() if types.is_date32(values.type) else pa.int64()).cast(pa.int64())
    return pc.and_(pc.greater_equal(counts, first), pc.less_equal(counts, last))


def count_emptied(values: pa.Array) -> int:
    """How many of `values` are empty texts, which a table without geometry cannot tell from missing ones."""
    values = _decoded(values)
    return int(pc.sum(pc.equal(values.cast(pa.string()), "")).as_py() or 0) if _is_text(values.type) else 0


def count_binary(values: pa.Array) -> int:
    """How many of `values` are bytes, which a table without geometry spells as hexadecimal digits."""
    is_spelled = _is_binary(storage(values).type) and not _is_uuid(values.type)
    return len(values) - int(values.null_count) if is_spelled else 0


def count_zeros(values: pa.Array) -> int:
    """How many of `values` are texts with zero bytes, at which the driver of GeoPackage would end them."""
    values = _decoded(values)
    if not _is_text(values.type):
        return 0
    return int(pc.sum(pc.match_substring(values.cast(pa.large_string()), "\0")).as_py() or 0)


def count_nans(values: pa.Array) -> int:
    """How many numbers in `values` are NaN, which become missing in a GeoPackage and in JSON."""
    return sum(int(pc.sum(pc.is_nan(numbers)).as_py() or 0) for numbers in _numbers_in(values))


def count_infinite_in_lists(values: pa.Array) -> int:
    """How many numbers in lists and structures are infinite, which JSON does not have."""
    numbers = _numbers_in(values) if types.is_nested(storage(values).type) else ()
    return sum(int(pc.sum(pc.is_inf(each)).as_py() or 0) for each in numbers)


def _numbers_in(values: pa.Array) -> Iterator[pa.Array]:
    """The floating-point numbers of an array, also those in its lists and structures."""
    values = storage(values)
    if types.is_floating(values.type):
        yield values.cast(pa.float64())
    elif types.is_map(values.type):
        yield from chain(_numbers_in(values.keys), _numbers_in(values.items))
    elif types.is_struct(values.type):
        yield from chain.from_iterable(map(_numbers_in, values.flatten()))
    elif types.is_nested(values.type):
        yield from _numbers_in(values.flatten())


def count_infinite(values: pa.Array) -> int:
    """How many of `values` are infinite, which become missing in a table without geometry."""
    values = storage(values)
    if not types.is_floating(values.type):
        return 0
    return int(pc.sum(pc.is_inf(values.cast(pa.float64()))).as_py() or 0)


_FORMER_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "list": types.is_nested,
    "time": types.is_time,
    "duration": types.is_duration,
    "unsigned": types.is_uint64,
    "decimal": types.is_decimal,
}
_BECOME_TEXTS = (types.is_uint64, types.is_time, types.is_null)
_CONVERSIONS: tuple[tuple[Callable[[Any], bool], Convert], ...] = (
    (types.is_nested, _to_json),
    (_is_text, _without_zeros),
    (types.is_decimal, lambda values: values.cast(pa.string()).cast(pa.float64())),  # a direct cast makes 47.3 inexact
    (types.is_float16, lambda values: values.cast(pa.float64())),
    (lambda kind: types.is_int8(kind) or types.is_uint8(kind), lambda values: values.cast(pa.int16())),
    (types.is_duration, _to_durations),
    (types.is_timestamp, lambda values: values.cast(pa.timestamp("ms", tz=_written_zone(values.type.tz)), safe=False)),
    (lambda kind: any(becomes_text(kind) for becomes_text in _BECOME_TEXTS), lambda values: values.cast(pa.string())),
)
