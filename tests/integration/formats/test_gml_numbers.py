"""Numbers of GML, whose types follow from all values of a column."""

from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

START = '<a:C xmlns:a="http://a" xmlns:gml="http://www.opengis.net/gml">'
COLUMNS: dict[str, tuple[list[str], list[object]]] = {
    "beyond 32 bits": (["2147483648", "-2147483649"], [2147483648, -2147483649]),
    "of ten digits": (["9876543210", "7"], [9876543210, 7]),
    "of 19 digits": (["1234567890123456789", "1"], [1234567890123456789, 1]),
    "the last of 64 bits": (["9223372036854775807", "-9223372036854775808"], [2**63 - 1, -(2**63)]),
    "beyond 64 bits": (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
    "below 64 bits": (["-9223372036854775809", "1"], ["-9223372036854775809", "1"]),
    "with zeros": (["0000000000000000001", "1"], ["0000000000000000001", "1"]),
    "large beside decimals": (["12345678901234567", "1.5"], ["12345678901234567", "1.5"]),
    "exact beside decimals": (["12345678901234568", "1.5"], [12345678901234568.0, 1.5]),
    "many decimals": (["0.12345678901234567890", "-1.5"], ["0.12345678901234567890", "-1.5"]),
    "those of a program": (["0.1000000000000000055511151231257827", "0.50000000000000000000"], [0.1, 0.5]),
    "of 800 digits": ([f"0.{'1' * 801}", "1.5"], [f"0.{'1' * 801}", "1.5"]),
    "in exponents": (["1.5e-7", "1234567890123456789012e1"], ["1.5e-7", "1234567890123456789012e1"]),
}
"""The values of a column, and what they become."""


@pytest.mark.parametrize("case", COLUMNS)
async def test_numbers_keep_all_of_their_digits(either: Pipeline, tmp_path: Path, case: str) -> None:
    """Integers of 19 digits became texts, and others lost digits beside decimals, without a word."""
    texts, values = COLUMNS[case]
    path = tmp_path / "a.gml"
    features = (f"<gml:featureMember><a:t><a:n>{text}</a:n></a:t></gml:featureMember>" for text in texts)
    path.write_text(f"{START}{''.join(features)}</a:C>", encoding="utf-8")
    done = await either.to("GeoJson", path)
    assert [found["properties"] for found in readers.geojson(done.path)] == [{"n": value} for value in values]
    [kind] = {type(value) for value in values}
    assert done.facts.layers[0].fields[0].type == {str: "text", int: "integer", float: "real"}[kind]
