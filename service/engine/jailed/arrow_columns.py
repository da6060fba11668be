"""Converts Arrow columns to types that a GeoPackage can hold. Runs in the sandbox."""

import json
import math
import re
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, chain, count
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from service.engine.jailed.encodings import mended

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
    return without_dictionary(storage(values))


def without_dictionary(values: pa.Array) -> pa.Array:
    """`values` themselves in place of their numbers in a dictionary."""
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
    is_long = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(is_long or types.is_fixed_size_binary(kind))


def _is_text(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _plain_text(values: pa.Array) -> pa.Array:
    if count_foreign(values):
        values = mapped(values.cast(pa.binary()), lambda text: mended(text) or text.decode())
    return pc.replace_substring(values.cast(pa.string()), "\0", "") if count_zeros(values) else values.cast(pa.string())


def _is_uuid(kind: Any) -> bool:
    return getattr(kind, "extension_name", "") == "arrow.uuid"


def _to_json(values: pa.Array) -> pa.Array:
    values = _as_list(values)
    if _repeats(values.type):
        values = values.view(_with_leaves(values.type, lambda kind: kind))
    kind = values.type
    has_durations = any(types.is_duration(leaf.type) for leaf in _leaves(values))
    for change in (_in_known_zone, _spelled_time, _counted):
        values = values.cast(_with_leaves(values.type, change))
    return mapped(values, (lambda value: _json_of(_with_durations(value, kind))) if has_durations else _json_of)


def _as_list(values: pa.Array) -> pa.Array:
    """A list of which pyarrow casts what is in it, in place of a view of one."""
    if not (types.is_list_view(values.type) or types.is_large_list_view(values.type)):
        return values
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_pylist()
    offsets = pa.array([0, *accumulate(lengths)], pa.int64())
    return pa.LargeListArray.from_arrays(offsets, values.flatten(), mask=values.is_null())


def _in_known_zone(kind: Any) -> Any:
    """The type of the same moments with an offset; there is no database of zones with names."""
    is_named = types.is_timestamp(kind) and kind.tz and not OFFSET.fullmatch(kind.tz)
    return pa.timestamp(kind.unit, NO_OFFSET) if is_named else kind


def _spelled_time(kind: Any) -> Any:
    """Text in place of dates and times: Python's have neither nanoseconds nor years beyond 9999."""
    return pa.string() if types.is_timestamp(kind) or types.is_date(kind) or types.is_time(kind) else kind


def _counted(kind: Any) -> Any:
    """Whole numbers in place of durations: Python's have no nanoseconds and end at a thousand million days."""
    return pa.int64() if types.is_duration(kind) else kind


def _with_durations(value: Any, kind: Any) -> Any:
    """A `value` of the type `kind` with durations as texts in place of numbers."""
    if value is None:
        return None
    if types.is_duration(kind):
        return _duration(value, kind)
    if types.is_struct(kind):
        return {field.name: _with_durations(value[field.name], field.type) for field in kind}
    if types.is_map(kind):
        return [(_with_durations(key, kind.key_type), _with_durations(item, kind.item_type)) for key, item in value]
    return [_with_durations(each, kind.value_type) for each in value] if types.is_nested(kind) else value


def _with_leaves(kind: Any, change: Callable[[Any], Any]) -> Any:
    """The type `kind` with others in place of those of the values in its lists and structures.

    The members of a structure get distinct names.
    """
    if types.is_struct(kind):
        named = zip(kind, _distinct([field.name for field in kind]), strict=True)
        return pa.struct([field.with_name(name).with_type(_with_leaves(field.type, change)) for field, name in named])
    if types.is_map(kind):
        return pa.map_(_with_leaves(kind.key_type, change), _with_leaves(kind.item_type, change))
    if types.is_fixed_size_list(kind):
        return pa.list_(_with_leaves(kind.value_type, change), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind):
        return (pa.list_ if types.is_list(kind) else pa.large_list)(_with_leaves(kind.value_type, change))
    return change(kind)


def _distinct(names: Sequence[str]) -> dict[str, None]:
    """`names`, those that are repeated with a number behind them that makes them others."""
    found: dict[str, None] = {}
    numbers = defaultdict[str, Iterator[int]](lambda: count(2))
    for name in names:
        numbered = (f"{name}_{number}" for number in numbers[name])
        found[next(each for each in chain((name,), numbered) if each not in found)] = None
    return found


def _repeats(kind: Any) -> bool:
    """Whether a structure in the type `kind` has several members of one name, of which pyarrow makes no object."""
    if types.is_struct(kind) and len({field.name for field in kind}) < kind.num_fields:
        return True
    return any(_repeats(kind.field(place).type) for place in range(getattr(kind, "num_fields", 0)))


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
    return mapped(values.cast(pa.int64()), lambda count: _duration(count, values.type))


def _duration(count: int, kind: Any) -> str:
    """A duration in ISO 8601; Python's objects for them would lose nanoseconds."""
    return f"PT{Decimal(count) / PER_SECOND[kind.unit]:f}S"


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
    moved = (each for each in _leaves(values) if types.is_timestamp(each.type) and _is_moved(each.type.tz))
    return sum(len(each) - int(each.null_count) for each in moved)


def _is_moved(zone: str | None) -> bool:
    return zone is not None and _written_zone(zone) != zone and not NAMES_OF_UTC.fullmatch(zone)


def count_spelled_in_lists(values: pa.Array) -> int:
    """How many decimals and binary values in lists and structures become texts, since JSON lacks such values."""
    leaves = _leaves(values) if types.is_nested(storage(values).type) else ()
    spelled = (each for each in leaves if types.is_decimal(each.type) or _is_binary(each.type))
    return sum(len(each) - int(each.null_count) for each in spelled)


def count_repeated(values: pa.Array) -> int:
    """How many of `values` are structures, or hold some, whose members have one name and get others."""
    values = _decoded(values)
    return len(values) - int(values.null_count) if _repeats(values.type) else 0


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


def count_foreign(values: pa.Array) -> int:
    """How many of `values` are texts that are not UTF-8, which no program that writes Arrow checks."""
    values = _decoded(values)
    if not _is_text(values.type):
        return 0
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return sum(text is not None and mended(text) is not None for text in values.cast(pa.binary()).to_pylist())
    return 0


def count_nans(values: pa.Array) -> int:
    """How many numbers in `values` are NaN, which become missing in a GeoPackage and in JSON."""
    return sum(int(pc.sum(pc.is_nan(numbers)).as_py() or 0) for numbers in _numbers_in(values))


def count_infinite_in_lists(values: pa.Array) -> int:
    """How many numbers in lists and structures are infinite, which JSON does not have."""
    numbers = _numbers_in(values) if types.is_nested(storage(values).type) else ()
    return sum(int(pc.sum(pc.is_inf(each)).as_py() or 0) for each in numbers)


def _numbers_in(values: pa.Array) -> Iterator[pa.Array]:
    """The floating-point numbers of an array, also those in its lists and structures."""
    return (each.cast(pa.float64()) for each in _leaves(values) if types.is_floating(each.type))


def _leaves(values: pa.Array) -> Iterator[pa.Array]:
    """The values of an array, or those in its lists and structures."""
    values = _decoded(values)
    if types.is_map(values.type):
        yield from chain(_leaves(values.keys), _leaves(values.items))
    elif types.is_struct(values.type):
        yield from chain.from_iterable(map(_leaves, values.flatten()))
    elif types.is_nested(values.type):
        yield from _leaves(values.flatten())
    else:
        yield values


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
    (_is_text, _plain_text),
    (types.is_decimal, lambda values: values.cast(pa.string()).cast(pa.float64())),  # a direct cast makes 47.3 inexact
    (types.is_float16, lambda values: values.cast(pa.float64())),
    (lambda kind: types.is_int8(kind) or types.is_uint8(kind), lambda values: values.cast(pa.int16())),
    (types.is_duration, _to_durations),
    (types.is_timestamp, lambda values: values.cast(pa.timestamp("ms", tz=_written_zone(values.type.tz)), safe=False)),
    (lambda kind: any(becomes_text(kind) for becomes_text in _BECOME_TEXTS), lambda values: values.cast(pa.string())),
)
