"""Numbers beyond 64 bits in JSON text."""

import pytest

from service.geojson.numbers import pieces_within_64_bits

LARGEST, LEAST = b"9223372036854775807", b"-9223372036854775808"
WRITTEN = {
    b"9223372036854775808": LARGEST,
    b"-9223372036854775809": LEAST,
    b"1" * 5000: LARGEST,
    b"-" + b"1" * 300: LEAST,
    b"1E400": b"Infinity",
    b"-1.5e+400": b"-Infinity",
    b"1" * 320 + b".5": b"Infinity",
    b"1e-400": b"0.0",
    b"-0.01e-500": b"0.0",
}
KEPT = (
    LARGEST,
    LEAST,
    b"0",
    b"-1.25",
    b"0.12345678901234567890123",
    b"1.2345678901234567890123e10",
    b"12345678901234567890.5",
    b"1e308",
    b"-1e300",
    b"4.9e-324",
    b"0e999",
    b"NaN",
    b"-Infinity",
)


def within(text: bytes) -> bytes:
    """The text as it is written for the converter."""
    return b"".join(pieces_within_64_bits(text))


@pytest.mark.parametrize("number", WRITTEN)
def test_a_number_beyond_64_bits_becomes_the_nearest_within(number: bytes) -> None:
    """Alone, in an array, and as a member; in texts and names it is none."""
    assert within(number) == WRITTEN[number]
    text = b'{"%%b": ["%%b", %b,%b , 5], "\\\\": %b, "\\"%%b": ""}' % (number, number, number)
    kept = within(text.replace(b"%%b", number))
    expected = text.replace(number, WRITTEN[number]).replace(b"%%b", number)
    assert kept == expected


@pytest.mark.parametrize("number", KEPT)
def test_other_numbers_stay_as_they_are(number: bytes) -> None:
    """Also those with many digits."""
    assert within(b'{"a": [%b,-1], "b": %b}' % (number, number)) == b'{"a": [%b,-1], "b": %b}' % (number, number)
