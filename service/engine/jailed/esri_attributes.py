"""Declares the attributes of Esri JSON as they are. Runs in the sandbox.

Its driver reads only attributes that the file declares, makes 0 of other values than numbers in columns of numbers, and
cuts whole numbers beyond 32 bits. It looks for what it knows the format by in the beginning. It reads all geometries in
the system of the file, whatever they name themselves, no measures of points, and nothing of a line or an area in which
a number is missing.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from service.engine.jailed.exits import Exit
from service.formats.facts import MAX_COLUMNS, Count, Name

TEXT, DOUBLE, INTEGER = "esriFieldTypeString", "esriFieldTypeDouble", "esriFieldTypeInteger"
BITS: Mapping[Any, int] = {
    "esriFieldTypeSmallInteger": 16,
    INTEGER: 32,
    "esriFieldTypeOID": 32,
    DOUBLE: 54,
    "esriFieldTypeBigInteger": 0,  # GDAL 3.6 does not know it, and makes texts of all its numbers
}
"""The types of numbers, and how many bits of a whole one, with its sign, the driver keeps."""
KNOWN_AS = {"esriFieldTypeSingle": DOUBLE}
"""What to declare in place of types that GDAL before 3.8 does not know, and of which it makes texts."""
NO_NUMBER = 64
WIDER = {32: INTEGER, 54: DOUBLE, NO_NUMBER: TEXT}
"""The types for values of so many bits."""
NO_NUMBERS = frozenset({"", "nan"})
"""Texts that stand for missing numbers: servers write "NaN"."""
NUMBER = re.compile(r"[+-]?(?:\d++\.?\d*+|\.\d++)(?:e[+-]?\d++)?|[+-]?inf(?:inity)?", re.ASCII)
"""A number in lower case as the driver reads it: Python reads 1_000, too, of which the driver makes 1."""
BLANKS = " \t\r\n"
_NONE = rb"(?:null|\"NaN\")"
MISSING = re.compile(rb"(?<=[\[,])\s*+" + _NONE + rb"(?=\s*+[,\]])")
"""A number that is missing in a position, such as the measure of a line that has none there."""
MISSING_LAST = re.compile(rb"(?:,\s*+" + _NONE + rb"\s*+)++\]")
NUMBER_LAST = re.compile(rb"\d\s*+\]")
FEATURES = "features"
KNOWN_BY = frozenset({FEATURES, "geometryType", "fields"})
"""One of the other members has to precede the features: by them, the driver knows Esri JSON."""
ZERO = rb"\u0000"
"""How JSON writes a NUL, at which the driver ends a text."""
BOM = b"\xef\xbb\xbf"
UNREAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: the driver says what is wrong, or reads it."""


class FoundAttributes(msgspec.Struct):
    """What is lost, or changed, when the file is read."""

    mistyped: Annotated[dict[Name, Count], Meta(max_length=MAX_COLUMNS)] = {}
    """How many values of each column are of another type than it declares, and made it one of texts."""
    cut_at_nul: Annotated[dict[Name, Count], Meta(max_length=MAX_COLUMNS)] = {}
    """How many texts of each column the driver cuts off."""
    own_systems: Count = 0
    """How many geometries name another system than the file."""
    first_own_system: Count = 0
    measured_points: Count = 0


class _Feature(msgspec.Struct):
    attributes: Any = None
    geometry: Raw = Raw(b"null")


class _Geometry(msgspec.Struct):
    """What the driver does not read of a geometry."""

    m: Any = None
    x: Any = None
    system: Any = msgspec.field(default=None, name="spatialReference")


class _Document(msgspec.Struct):
    features: list[_Feature]
    fields: Any = None
    aliases: Any = msgspec.field(default=None, name="fieldAliases")
    system: Any = msgspec.field(default=None, name="spatialReference")


_DOCUMENT = msgspec.json.Decoder(_Document)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_GEOMETRY = msgspec.json.Decoder(_Geometry | None)


def main(file: str, copy: str) -> FoundAttributes:
    """Write `file` to `copy` with types that hold all values; nothing if it declares only such."""
    text = Path(file).read_bytes().removeprefix(BOM)
    found = FoundAttributes()
    with suppress(*UNREAD):
        document = _DOCUMENT.decode(text)
        fields, found.mistyped = _fields(document)
        columns = _values(document.features)
        cut = {name: sum(map(_has_nul, values)) for name, values in columns.items()} if ZERO in text else {}
        found.cut_at_nul = {name: count for name, count in cut.items() if count}
        _count_geometries(document, found)
        members = {} if fields is None else {"fields": Raw(msgspec.json.encode(fields))}
        has_emptied = _empty(document.features, fields or _declared(document))
        if _fill(document.features) or has_emptied:
            members[FEATURES] = Raw(msgspec.json.encode(document.features))
        former = _MEMBERS.decode(text)
        if members or next(name for name in former if name in KNOWN_BY) == FEATURES:
            members = former | members
            rows = members.pop(FEATURES)  # they come last: the driver looks for the others in the beginning
            Path(copy).write_bytes(msgspec.json.encode(members | {FEATURES: rows}))
    return found


def _values(features: Iterable[_Feature]) -> dict[str, list[Any]]:
    """The values of all attributes that are not null, by their names."""
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    for feature in features:
        if isinstance(feature.attributes, dict):
            for name, value in feature.attributes.items():
                if value is not None:
                    columns[name].append(value)
    return columns


def _has_nul(value: Any) -> bool:
    return isinstance(value, str) and "\0" in value


def _declared(document: _Document) -> list[dict[str, Any]]:
    fields = document.fields if isinstance(document.fields, list) else []
    return [
        field
        for field in fields
        if isinstance(field, dict) and isinstance(field.get("name"), str) and isinstance(field.get("type", ""), str)
    ]


def _fields(document: _Document) -> tuple[list[dict[str, Any]] | None, dict[str, int]]:
    """What to declare, None if that is what the file does; and how many values make which columns ones of texts."""
    columns, declared = _values(document.features), _declared(document)
    fields, mistyped = [], {}
    for field in declared:
        name, given = field["name"], field.get("type", "")
        kind = read_as = KNOWN_AS.get(given, given)
        needed = [_bits(value) for value in columns.get(name, ())] if read_as in BITS else []
        if max(needed, default=0) > BITS.get(read_as, NO_NUMBER):
            kind = WIDER[max(32, *needed)]
            if kind == TEXT:
                mistyped[name] = sum(bits > BITS[read_as] for bits in needed)
        fields.append(field if kind == given else {"name": name, "alias": field.get("alias"), "type": kind})
    names = [field["name"] for field in declared] or (document.aliases if isinstance(document.aliases, dict) else ())
    known = set(map(str.lower, names))
    missing = {name: values for name, values in columns.items() if name.lower() not in known}
    if missing and not declared:  # those of its aliases would be left out beside others
        missing = columns
    fields += [{"name": name, "type": WIDER[max(32, *map(_own_bits, values))]} for name, values in missing.items()]
    if len(fields) > MAX_COLUMNS:
        sys.exit(Exit.TOO_MANY_COLUMNS)
    return (None if fields == declared else fields), mistyped


def _bits(value: Any) -> int:
    """How many bits a column needs for a value, one of those in `WIDER` or fewer."""
    if isinstance(value, str):
        return 0 if _stands_for_none(value) else _bits(_number_in(value))
    if isinstance(value, float):
        return BITS[DOUBLE]
    if not isinstance(value, int) or isinstance(value, bool):
        return NO_NUMBER
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return next((room for room in (16, *WIDER) if bits <= room), NO_NUMBER)


def _own_bits(value: Any) -> int:
    """The same of an attribute that the file does not declare: its texts stay texts, such as 00501."""
    is_text = isinstance(value, str) and not _stands_for_none(value)
    return NO_NUMBER if is_text else _bits(value)


def _stands_for_none(text: str) -> bool:
    return text.strip(BLANKS).lower() in NO_NUMBERS


def _number_in(text: str) -> float | None:
    plain = text.strip(BLANKS).lower()
    for read in (int, float) if NUMBER.fullmatch(plain) else ():
        with suppress(ValueError):
            return read(plain)
    return None


def _empty(features: Iterable[_Feature], fields: Sequence[Mapping[str, Any]]) -> bool:
    """Make missing values of texts that stand for them in columns of numbers; returns whether there are any."""
    numbers = {field["name"] for field in fields if field.get("type") in BITS}
    has_any = False
    for feature in features:
        attributes = feature.attributes if isinstance(feature.attributes, dict) else {}
        for name in numbers & attributes.keys():
            if isinstance(attributes[name], str) and _stands_for_none(attributes[name]):
                attributes[name], has_any = None, True
    return has_any


def _fill(features: Iterable[_Feature]) -> bool:
    """Write numbers that are missing in positions as NaN, or leave out all last ones; returns whether there are any."""
    has_any = False
    for feature in features:
        text = bytes(feature.geometry)
        if (b"null" in text or b"NaN" in text) and MISSING.search(text):
            text = text if NUMBER_LAST.search(text) else MISSING_LAST.sub(b"]", text)
            feature.geometry, has_any = Raw(MISSING.sub(b"NaN", text)), True
    return has_any


def _count_geometries(document: _Document, found: FoundAttributes) -> None:
    systems = _names_of(document.system)
    for number, feature in enumerate(document.features, 1):
        geometry = _GEOMETRY.decode(feature.geometry)
        if geometry is None:
            continue
        found.measured_points += geometry.x is not None and isinstance(geometry.m, int | float)
        names = _names_of(geometry.system)
        systems = systems or names
        if names and systems.isdisjoint(names):
            found.own_systems += 1
            found.first_own_system = found.first_own_system or number


def _names_of(system: Any) -> set[object]:
    """The codes, or the text, that name a system."""
    if not isinstance(system, dict):
        return set()
    found = {name: value for name in ("wkid", "latestWkid", "wkt") if isinstance(value := system.get(name), int | str)}
    codes: set[object] = {value for name, value in found.items() if name != "wkt" and value}
    return codes or set(found.values())
