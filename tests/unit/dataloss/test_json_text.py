"""Objects and arrays as text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.geojson.jsontext import json_text
from service.geojson.refusals import MAX_NESTING, Unreadable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{ }"),
        ([], "[ ]"),
        ({"a": 1, "b": [1, {"u": None}]}, '{ "a": 1, "b": [ 1, { "u": null } ] }'),
        ([1.0, 1.5, 1e300, 0.1, -0.0], "[ 1.0, 1.5, 1.0000000000000001e+300, 0.10000000000000001, -0.0 ]"),
        ([True, False], "[ true, false ]"),
        (['q/w"\\é\n\x01'], '[ "q\\/w\\"\\\\é\\n\\u0001" ]'),
        ([2**63, -(2**63) - 5], "[ 9223372036854775807, -9223372036854775808 ]"),
        ([float("nan"), float("inf")], "[ NaN, Infinity ]"),
        (["a\0b"], '[ "a" ]'),
    ],
)
def test_values_are_spelt_as_the_converter_does(value: Any, text: str) -> None:
    """With blanks inside brackets, seventeen digits and escaped slashes."""
    assert json_text(value) == text


@pytest.mark.no_cover
@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text('ab"\\/é'), inner)),
    )
)
def test_the_text_says_the_value(value: Any) -> None:
    """Parsed as JSON, it equals the value."""
    assert json.loads(json_text(value)) == value


@pytest.mark.parametrize("depth", [MAX_NESTING, MAX_NESTING + 1, 100_000])
def test_depth_costs_no_stack_and_has_a_limit(depth: int) -> None:
    """Up to the limit it is text; beyond, it is refused, however deep."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    if depth <= MAX_NESTING:
        assert json_text(value).count("[") == depth
    else:
        with pytest.raises(Unreadable, match="nested too deeply"):
            json_text(value)
    while value:
        value = value.pop()
