"""Findings about the values of a property."""

import math
import tracemalloc
from itertools import permutations
from typing import Any

import pytest

from service.formats.facts import FieldType
from service.geojson.fields import FieldTally
from service.geojson.findings import FieldFindings
from service.geojson.scan import scan_bytes
from service.geojson.warnings import reading_warnings
from tests.support.geojson import collection, feature, with_value


def found(*values: Any) -> FieldFindings:
    """The findings about a property with one of these values in each feature."""
    return scan_bytes(collection(*(feature({"a": value}) for value in values))).fields[0]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([None, None], "text"),
        ([None, 1], "integer"),
        ([True, False], "boolean"),
        ([True, 2], "integer"),
        ([1, 2.5], "real"),
        ([True, 2.5, None], "real"),
        ([1, "x"], "text"),
        (["2020-01-01", None, "2021/02/03"], "date"),
        (["2020-01-01", "2020-01-01T10:00:00Z"], "datetime"),
        (["10:00", "11:30:15"], "time"),
        (["2020-01-01", "10:00"], "text"),
        (["2020-01-01", 5], "text"),
        ([5, "2020-01-01"], "text"),
        (["2020-01-01", "soon"], "text"),
        ([""], "text"),
        ([[1]], "text"),
        ([{}, 1], "text"),
    ],
)
def test_the_type_of_a_column_follows_from_all_values(values: list[Any], column: str) -> None:
    """Numbers widen, dates become date-times, and everything else combines to text, in whatever order."""
    assert found(*values).type == column
    assert found(*reversed(values)).type == column


@pytest.mark.parametrize(
    ("values", "mixes"),
    [
        ([[1, 2], [2.5], None], False),
        ([["x"], [], {}], False),
        ([{}, 1], False),
        ([[1], ["x"]], True),
        ([[True], [1]], True),
        ([[1, 2], 3], True),
        ([["x"], "y"], True),
    ],
)
def test_lists_are_mixed_beside_other_values_and_with_values_of_other_types(
    values: list[Any],
    *,
    mixes: bool,
) -> None:
    """Of whole and decimal numbers, a list of numbers is made."""
    assert found(*values).mixes_lists is mixes
    assert found(*reversed(values)).mixes_lists is mixes


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([1, 2.5, None], (0, 0, 0)),
        ([True, False], (0, 0, 0)),
        (["x", "0.1"], (0, 0, 0)),
        ([1, 0.1, True, "x", None], (1, 2, 0)),
        ([1, 1e3, [1]], (1, 1, 0)),
        ([True, 7, False, None], (0, 0, 2)),
        ([True, 1.5], (0, 0, 1)),
    ],
)
def test_values_that_become_those_of_another_type_are_counted(values: list[Any], counts: tuple[int, ...]) -> None:
    """Decimal numbers are counted apart, because their texts may have other digits; so are true and false."""
    for column in (found(*values), found(*reversed(values))):
        assert (column.reals_as_texts, column.others_as_texts, column.booleans_as_numbers) == counts


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("x" * 254, 254),
        ("x" * 255, 255),
        ("é" * 127, 254),
        ("é" * 128, 256),
        ("日" * 85, 255),
        ("😀" * 64, 256),
        ("", 0),
    ],
)
def test_texts_are_measured_in_bytes_of_utf_8(text: str, size: int) -> None:
    """As the table counts; 254 bytes fit."""
    field = found("short", text, None)
    assert field.longest_bytes == max(size, len("short"))
    assert field.over_dbf_limit == (size > 254)


def test_every_value_that_is_too_long_is_counted() -> None:
    """Texts, objects and arrays alike."""
    field = found("x" * 300, "y" * 255, "z", {"k": "v" * 300}, list(range(200)))
    assert field.over_dbf_limit == 4
    assert field.longest_bytes == len(f"[ {', '.join(map(str, range(200)))} ]")


def test_letters_written_as_escapes_count_as_letters() -> None:
    """The text counts, rather than its spelling; a lone surrogate becomes a replacement character."""
    assert scan_bytes(with_value('"\\u00e9\\ud83d\\ude00\\/"')).fields[0].longest_bytes == 2 + 4 + 1
    assert scan_bytes(with_value('"x\\ud800y"')).fields[0].longest_bytes == 1 + 3 + 1


def test_a_text_ends_at_a_nul() -> None:
    """As in the converter."""
    field = found("ab\0" + "x" * 300, "c")
    assert (field.longest_bytes, field.over_dbf_limit, field.cut_at_nul) == (2, 0, 1)


def test_texts_within_objects_and_arrays_end_at_a_nul() -> None:
    """They are counted, like others; the letters of an escape are none."""
    field = found(["ab\0c", 1], {"k": ["\0"]}, {"\0": 1}, ["\\u0000", "\\x00"], ["a"])
    assert (field.nested, field.cut_at_nul) == (5, 3)


def test_the_last_of_equal_names_counts() -> None:
    """A repeated name is one column with the last value."""
    field = scan_bytes(with_value('1, "a": "text"')).fields[0]
    assert (field.type, field.filled) == ("text", 1)


@pytest.mark.parametrize(
    ("numbers", "inexact", "clamped"),
    [
        ([10**18 - 1, 2**53 + 1], 0, 0),
        ([10**18, 5], 0, 0),
        ([10**18 + 1, 2**53 + 1, 5], 2, 0),
        ([-(10**17) - 1], 1, 0),
        ([-(10**16)], 0, 0),
        ([2**53 + 1, 0.5], 1, 0),
        ([2**63 - 1], 1, 0),
        ([2**63, -(2**63) - 1], 1, 2),
        ([10**5000], 0, 1),
        ([1e-9, 0.0, -0.0, 0.1], 1, 0),
    ],
)
def test_numbers_that_do_not_fit_are_counted(numbers: list[Any], inexact: int, clamped: int) -> None:
    """An integer column becomes floating-point if one of its numbers has more than 18 characters."""
    field = found_numbers(numbers)
    assert (field.inexact_in_dbf, field.clamped_integers) == (inexact, clamped)


@pytest.mark.parametrize(
    ("numbers", "count"),
    [
        ([2**53 + 1, 0.5], 1),
        ([0.5, -(2**53) - 1, 2**63 - 1], 2),
        ([2**53 + 2, 0.5], 0),
        ([2**53 + 1, 5], 0),
        ([2**53 + 1, "x"], 0),
        ([2**64 + 1, 0.5], 0),
    ],
)
def test_integers_that_lose_digits_beside_decimals_are_told(numbers: list[Any], count: int) -> None:
    """Every target has the same column of floating-point numbers."""
    scan = scan_bytes(collection(*(feature({"a": number}) for number in numbers)))
    assert scan.fields[0].integers_as_reals == count
    told = f"{count} value{'s' * (count > 1)} in a: integers beyond 53 bits lost digits"
    assert any(warning.startswith(told) for warning in reading_warnings(scan)) == (count > 0)


@pytest.mark.parametrize(
    ("number", "is_oversize", "is_near_infinite"),
    [
        (1e24, False, False),
        (1.0000000000000001e24, True, False),
        (-1e23, False, False),
        (-1.0000000000000001e23, True, False),
        (1.797693134862315e308, True, False),
        (-1.7976931348623157e308, True, True),
    ],
)
def test_large_numbers_that_become_others_are_counted(
    number: float, *, is_oversize: bool, is_near_infinite: bool
) -> None:
    """A .dbf has 24 characters for a number; other targets have 15 digits, which may round it to infinity."""
    field = found_numbers([number, -0.0, 1.5])
    assert (field.beyond_dbf, field.near_infinite) == (is_oversize, is_near_infinite)
    assert len(f"{number:.0f}") > 24 or not is_oversize
    assert math.isinf(float(f"{number:.15g}")) == is_near_infinite
    assert (field.inexact_in_dbf, field.infinite) == (0, 0)


@pytest.mark.parametrize(
    ("number", "is_other"),
    [
        (1234567890123456, True),
        (1234567890123450, False),
        (-(2**53) - 1, True),
        (-123456789012345678.0, True),
        (2**63 - 1, True),
        (1.2345678901234567e19, False),
        (0.12345678901234567, False),
    ],
)
def test_whole_numbers_of_more_than_15_digits_are_counted_among_decimals(number: float, *, is_other: bool) -> None:
    """The targets that write 15 digits of decimals write whole ones beside integers."""
    assert found_numbers([number, 1.5]).beyond_15_digits == is_other
    assert not isinstance(number, int) or found_numbers([number, 1]).beyond_15_digits == 0


def found_numbers(numbers: list[Any]) -> FieldFindings:
    """The findings about numbers, including those that Python refuses to write out."""
    texts = ["1" + "0" * 5000 if number == 10**5000 else repr(number) for number in numbers]
    document = b",".join(b'{"type":"Feature","geometry":null,"properties":{"a":%b}}' % text.encode() for text in texts)
    return scan_bytes(b'{"type":"FeatureCollection","features":[%b]}' % document).fields[0]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_what_is_no_number_is_a_number_that_does_not_fit(number: str) -> None:
    """The converter reads NaN and the infinities, although strict JSON has none."""
    field = scan_bytes(with_value(number)).fields[0]
    is_infinite = number != "NaN"
    assert (field.type, field.inexact_in_dbf, field.nans, field.infinite) == ("real", 0, not is_infinite, is_infinite)


def test_small_things_are_counted() -> None:
    """Nulls, empty texts and trailing blanks."""
    field = found(None, "", "", "x ", " x", "x", None)
    assert (field.filled, field.empty, field.trailing_blanks) == (5, 2, 1)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("{}", 1),
        ("{'a': 1}", 1),
        ("[ 1]", 1),
        ("[False]", 1),
        ("[[]]", 1),
        ("{6F96}", 0),
        ("[n]", 0),
        ("{", 0),
        ("a{}", 0),
    ],
)
def test_texts_that_are_like_json_are_counted(text: str, count: int) -> None:
    """Identifiers in braces and words in brackets are not."""
    assert found(text).like_json == count


def test_texts_that_only_begin_like_a_time_are_counted() -> None:
    """In a column of times, text after a time is lost; in a column of texts, nothing is."""
    assert found("10:00 and on", "11:00:00").reworded_moments == 1
    assert found("10:00 and on", "never").reworded_moments == 0


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("2024-02-29", True),
        ("2024/02/29 10:00:00Z", True),
        ("2021-02-29", False),
        ("2021-02-29T10:00:00", False),
        ("2024-02-30", False),
        ("2024-04-31", False),
        ("2024-04-30", True),
        ("2024-12-31", True),
    ],
)
def test_days_that_no_calendar_has_stay_texts(text: str, *, is_kept: bool) -> None:
    """Programs that read a column of dates take 2021-02-29 for 2021-03-01."""
    assert found(text, "2024-01-01").reworded_moments == (not is_kept)
    assert found(text, "2024-01-01").type is not FieldType.TEXT


@pytest.mark.parametrize(
    ("ids", "columns", "dropped"),
    [
        (["a", 5], ["id", "n"], 0),
        ([7, "a"], ["n"], 2),
        ([-1, 5], ["id", "n"], 0),
        ([0.5], ["id", "n"], 0),
        ([None, None], ["n"], 0),
        ([{"x": 1}], ["id", "n"], 0),
    ],
)
def test_the_first_id_decides_what_ids_become(ids: list[Any], columns: list[str], dropped: int) -> None:
    """A whole number from 0 numbers features and is lost; anything else becomes a column."""
    scan = scan_bytes(collection(*(feature({"n": number}, id=value) for number, value in enumerate(ids))))
    assert [field.name for field in scan.fields] == columns
    assert scan.dropped_ids == dropped


@pytest.mark.parametrize(
    ("rows", "column", "filled", "dropped"),
    [
        ([({"id": 3}, "x")], "integer", 1, 1),
        ([({"id": 3}, 3), ({"id": "4"}, 4)], "text", 2, 0),
        ([({"id": 3.0}, 3)], "real", 1, 0),
        ([({"id": True}, "w0"), ({"n": 1}, "w1")], "boolean", 1, 2),
        ([({"id": 5}, None), ({"n": 1}, 9)], "integer", 2, 0),
        ([({"id": 0.5}, "w0"), ({"n": 1}, 7)], "real", 2, 1),
        ([({"id": "x"}, 7), ({"n": 1}, 8)], "text", 1, 2),
        ([({"id": None}, "w0"), ({"id": True}, "w1")], "text", 1, 2),
        ([({"id": None}, None), ({"n": 1}, 8)], "integer", 1, 0),
        ([({"id": "2020-01-01"}, "w0"), ({"n": 1}, "w1")], "date", 1, 2),
        ([({"id": {"a": 1}}, "w0"), ({"n": 1}, "w1")], "text", 2, 1),
        ([({"n": 1}, -3), ({"id": "x"}, 8), ({"n": 1}, 9)], "text", 3, 1),
        ([({"n": 1}, 5), ({"n": 1}, -3)], "integer", 2, 0),
        ([({"n": 1}, "2020-01-01")], "text", 1, 0),
    ],
)
def test_ids_fill_the_gaps_of_a_property_called_id(
    rows: list[tuple[dict[str, Any], Any]], column: str, filled: int, dropped: int
) -> None:
    """Unless they number features or have another type. Those that differ from a property are lost."""
    scan = scan_bytes(
        collection(*(feature(properties, **({} if id_ is None else {"id": id_})) for properties, id_ in rows))
    )
    field = next(field for field in scan.fields if field.name == "id")
    assert (field.type, field.filled, scan.dropped_ids) == (column, filled, dropped)


@pytest.mark.parametrize(
    ("member", "epsg"),
    [
        (None, 4326),
        ({"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}, 4326),
        ({"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}}, 3857),
        ({"type": "name", "properties": {"name": "EPSG:2154"}}, 2154),
        ({"type": "name", "properties": {"name": "something"}}, None),
        ({"type": "link", "properties": {"href": "http://example.com/"}}, None),
        ({"type": "EPSG", "properties": {"code": 4326}}, 4326),
        ({"type": "EPSG", "properties": {"code": 28992}}, None),
        ({"type": "EPSG", "properties": {"name": "EPSG:28992"}}, None),
        ({"properties": {"name": "EPSG:28992"}}, None),
        ({"type": "name", "name": "EPSG:28992"}, None),
        ("EPSG:28992", None),
        ([], None),
    ],
)
def test_an_old_crs_member_is_read(member: Any, epsg: int | None) -> None:
    """Its code, if written in one of the usual ways; otherwise what names it."""
    scan = scan_bytes(collection(feature(), crs=member))
    assert scan.crs_epsg == epsg
    assert bool(scan.crs_name) is bool(member)
    assert scan_bytes(collection(feature())).crs_epsg == 4326


def test_moments_are_counted_alike_in_one_batch_and_in_many() -> None:
    """A text that was seen before is counted again."""
    texts = ["2020-01-01", "2020-01-01T10:00:00.123456Z", "2020-01-01 about noon", "-2020-1-1"] * 3
    for kept in range(len(texts)):
        whole, cut = FieldTally(), FieldTally()
        whole.add(texts[: kept + 1])
        for text in texts[: kept + 1]:
            cut.add([text])
        assert cut.findings("a") == whole.findings("a")


def test_moments_of_many_batches_are_not_kept_for_ever() -> None:
    """Texts that begin with a time may be arbitrarily long."""
    field = FieldTally()
    tracemalloc.start()
    try:
        for number in range(100):
            field.add([f"12:30:{number % 60:02} {number}" + "x" * 100_000])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert field.findings("a").type is FieldType.TIME
    assert peak < 2_000_000


@pytest.mark.parametrize("letter", ["a", "ä", "日"])
def test_blanks_at_the_end_are_counted_once_for_each_text(letter: str) -> None:
    """Whatever other blanks there are, in whatever order the texts come."""
    texts = [f"{letter} ", f"{letter}  ", f" {letter}", f"{letter} {letter}", " ", "", letter]
    for _ in texts:
        texts.append(texts.pop(0))
        assert found(*texts).trailing_blanks == 3


def test_columns_are_those_of_the_names_in_whatever_order_they_stand() -> None:
    """Even if only some features have a name, or other features have others."""
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": "x"},
        {"b": "y", "a": 2.5},
        {"a": None, "c": "z"},
        {"c": "2020-01-01"},
        {},
    ]
    for some in permutations(rows):
        fields = {field.name: field for field in scan_bytes(collection(*map(feature, some))).fields}
        assert {name: (field.type, field.filled) for name, field in fields.items()} == {
            "a": ("real", 2),
            "b": ("text", 2),
            "c": ("text", 2),
        }
        assert list(fields) == list(dict.fromkeys(name for row in some for name in row))
