"""The report matches the file: every name, value and geometry."""

import asyncio
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from service.dataloss.rules import report
from service.formats.dbf_names import VALUE_BYTES, clip
from service.formats.facts import FieldType, Flaw
from service.formats.format import reading_of
from service.formats.geometry import FAMILIES
from service.formats.table.json_family import GEOJSON
from service.geojson.findings import FieldFindings
from service.geojson.jsontext import json_text
from tests.integration.dataloss.conversion import Result, convert_both_ways
from tests.integration.dataloss.documents import features
from tests.integration.dataloss.shapefile import Position, Shapefile
from tests.support.converters import Converters
from tests.support.geojson import collection, flaw

EXAMPLES = int(os.environ.get("EXAMPLES", "30"))
"""More take time that not every run of the tests has: `EXAMPLES=500 ./just test tests/integration/dataloss`."""
NULL_DATE = "00000000"
KEPT = "\ue000"
"""A character that no document has, in place of NUL."""
HALF_LETTER = re.compile("[\ud800-\udfff]")
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""A case that fails is printed as it is: looking for a smaller one would take as long again for each step."""


@settings(max_examples=EXAMPLES, deadline=None, phases=WITHOUT_SHRINKING, suppress_health_check=list(HealthCheck))
@given(features())
def test_nothing_is_lost_that_is_not_reported(converters: Converters, made: list[dict[str, Any]]) -> None:
    """For documents of every kind, through the work file and directly."""
    rounds = converters.engine.capabilities.is_of(reading_of(GEOJSON).rounds_long_negatives)
    for result in asyncio.run(convert_both_ways(converters, collection(*made))):
        _check_columns(result)
        _check_rows(result, made)
        _check_values(result, made, rounds=rounds)
        _check_geometries(result, made)


def _check_columns(result: Result) -> None:
    """Every property is a column under the reported name; colliding ones have distinct names."""
    told = report(result.scan)
    shortened = {entry.original: entry.truncated for entry in told.field_name_truncations}
    colliding = {name for entry in told.field_name_collisions for name in entry.fields}
    written = _written_names(result)
    for name in (field.name for field in result.scan.fields):
        assert name in colliding or written[name] == shortened.get(name, name)
        assert len(written[name].encode()) <= 10
    for file in result.files.values():
        assert {column.name for column in file.columns} == set(written.values())
    assert len(set(written.values())) == len(result.scan.fields)


def _written_names(result: Result) -> dict[str, str]:
    """The column of each property. Through the work file, names that differ only in case get numbers there."""
    columns = {column.name: column.written for column in result.plan.datasets[0].columns}
    return {field.name: columns.get(field.name) or _renamed(columns, field.name) for field in result.scan.fields}


def _renamed(columns: dict[str, str], name: str) -> str:
    return next(written for column, written in columns.items() if re.fullmatch(re.escape(name) + r"\d+", column))


def _check_rows(result: Result, made: list[dict[str, Any]]) -> None:
    """Every feature has a row in each file that holds some of its geometry."""
    numbers = [int(row["n"]) for file in result.files.values() for row in _rows(result, file)]
    assert set(numbers) == set(range(len(made)))
    assert result.scan.features == len(made)


def _rows(result: Result, file: Shapefile) -> Iterator[dict[str, bytes]]:
    names = {written: name for name, written in _written_names(result).items()}
    for row in file.rows:
        yield {names[column.name]: value for column, value in zip(file.columns, row, strict=True)}


def _check_values(result: Result, made: list[dict[str, Any]], *, rounds: bool) -> None:
    """Every value is there, except for the differences that were counted; `rounds`: the driver rounds some numbers."""
    told = report(result.scan)
    affected = {entry.field: entry.affected_features for entry in told.value_truncations}
    lengths = {entry.field: entry.max_length for entry in told.value_truncations}
    has_ids = result.scan.dropped_ids == sum(map(_hides_id, made))
    stored: dict[int, dict[str, bytes]] = {}
    for file in result.files.values():
        stored |= {int(row["n"]): row for row in _rows(result, file)}
    for field in result.scan.fields:
        values = {number: _value(feature, field.name, has_ids=has_ids) for number, feature in enumerate(made)}
        texts = {number: _text(value) for number, value in values.items() if value is not None}
        if field.type is FieldType.TEXT:
            long = [len(text.encode()) for text in texts.values() if len(text.encode()) > VALUE_BYTES]
            assert (len(long), max(long, default=0)) == (affected.get(field.name, 0), lengths.get(field.name, 0))
            changed = sum(
                _clamped(row[field.name].decode().rstrip(" "), values[number]) not in _clipped(values[number])
                for number, row in stored.items()
            )
            assert changed <= (field.rounded_integers if rounds else 0)
        else:
            assert field.name not in affected
            changed = sum(not _is_kept(row[field.name], values[number], field) for number, row in stored.items())
            lost_ids = result.scan.dropped_ids if field.name == "id" else 0
            told_numbers = field.inexact_in_dbf + field.beyond_dbf + field.clamped_integers
            assert changed <= told_numbers + field.reworded_moments + lost_ids


def _hides_id(feature: dict[str, Any]) -> bool:
    """Whether the id of a feature is lost because its properties have another one."""
    if "id" not in feature or "id" not in feature["properties"]:
        return False
    one, other = feature["id"], feature["properties"]["id"]
    return one != other and str(one) != str(other)


def _value(feature: dict[str, Any], name: str, *, has_ids: bool) -> Any:
    """The value of a property; with `has_ids`, ids beside the properties fill gaps in a property of the same name."""
    properties = feature["properties"]
    if name == "id" and name not in properties and has_ids:
        return feature.get("id")
    return properties.get(name)


def _text(value: Any) -> str:
    """The text that a column holds for a value, with U+FFFD for a lone surrogate."""
    return _whole(value.partition("\0")[0]) if isinstance(value, str) else json_text(_whole(value))


def _whole(value: Any) -> Any:
    """A value with U+FFFD for each lone surrogate; of members whose names become one, the last remains."""
    if isinstance(value, dict):
        return {_whole(name): _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return list(map(_whole, value))
    return HALF_LETTER.sub("\ufffd", value) if isinstance(value, str) else value


def _clipped(value: Any) -> set[str]:
    """The texts that a row may hold for a value: newer drivers keep NUL in objects and arrays, older ones end there."""
    if value is None:
        return {""}
    texts = [_text(value)]
    if isinstance(value, dict | list):
        texts.append(_text(_with_nul(value)).replace(KEPT, "\\u0000"))
    return {clip(text, VALUE_BYTES).rstrip(" ") for text in texts}


def _with_nul(value: Any) -> Any:
    """A value with a mark for each NUL in its texts, but not in its names."""
    if isinstance(value, dict):
        return {name: _with_nul(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return list(map(_with_nul, value))
    return value.replace("\0", KEPT) if isinstance(value, str) else value


def _clamped(stored: str, value: Any) -> str:
    """A whole number beyond 64 bits as reported; in newline-delimited GeoJSON the converter keeps one bit more."""
    return json_text(int(Decimal(stored))) if type(value) is int else stored


def _is_kept(stored: bytes, value: Any, field: FieldFindings) -> bool:
    """Whether a column that is not text holds the document's value."""
    text = stored.decode().strip()
    if value is None:
        return text.strip("*") in {"", "?"} or text == NULL_DATE
    if field.type is FieldType.BOOLEAN:
        return text in {str(int(value)), "FT"[value]}  # newer drivers write logical columns
    if field.type is FieldType.INTEGER:
        return Decimal(text) == int(value)
    if field.type is FieldType.REAL:
        return bool(abs(float(text) - value) <= 1e-9 * abs(value))
    digits = re.sub(r"\D", "", value)
    return re.sub(r"\D", "", text).startswith(digits[:8] if field.type is FieldType.DATE else digits[:12])


def _check_geometries(result: Result, made: list[dict[str, Any]]) -> None:
    """Every geometry is whole and in the file of its family, or was reported."""
    told = {entry.issue: entry for entry in report(result.scan).geometry_coercions}
    kept: defaultdict[int, list[Any]] = defaultdict(list)
    for file in result.files.values():
        for row, geometry in zip(_rows(result, file), file.geometries, strict=True):
            kept[int(row["n"])] += [_comparable(part, file.shape_type) for part in geometry or ()]
    families = set()
    lost = 0
    for number, feature in enumerate(made):
        parts = list(_parts(feature["geometry"]))
        families |= {family for family, _ in parts}
        assert sorted(kept[number]) == sorted(part for _, part in parts)
        lost += feature["geometry"] is not None and not parts
    assert ("mixed_geometry_families" in told) == (len(families) > 1)
    assert ("geometry_collection" in told) == bool(result.scan.geometry_types.get("GeometryCollection"))
    unreadable = flaw(result.scan, Flaw.UNREADABLE).count
    assert lost == unreadable + result.scan.empty_geometries
    assert ("unreadable_geometry" in told) == bool(unreadable)


def _parts(geometry: dict[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """The points, lines and rings of a readable geometry, each with its family."""
    kind = str((geometry or {}).get("type"))
    if geometry is None or kind not in FAMILIES:
        return
    if kind == "GeometryCollection":
        for member in geometry["geometries"]:
            yield from _parts(member)
        return
    coordinates = geometry["coordinates"]
    depth = {"Point": 0, "LineString": 0, "MultiPoint": 1, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}[kind]
    if not _is_readable(coordinates):
        return
    parts = [coordinates]
    for _ in range(depth):
        parts = [inner for part in parts for inner in part]
    shape_type = {"point": 1, "line": 3, "polygon": 5}[FAMILIES[kind]]
    for part in parts:
        plain = [part] if FAMILIES[kind] == "point" else part
        yield FAMILIES[kind], _comparable([(position[0], position[1]) for position in plain], shape_type)


def _is_readable(coordinates: Any) -> bool:
    """Whether coordinates consist of positions of numbers."""
    if not coordinates or not isinstance(coordinates, list):
        return False
    if all(isinstance(number, int | float) for number in coordinates):
        return len(coordinates) > 1
    return all(map(_is_readable, coordinates))


def _comparable(part: list[Position], shape_type: int) -> list[Position]:
    """A part in a normal form: the direction and starting point of a ring do not matter."""
    rounded = [(round(x, 9), round(y, 9)) for x, y in part]
    return sorted(rounded[:-1]) if shape_type % 10 == 5 else rounded
