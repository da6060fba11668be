"""Times in zones that the converter does not know are counted in the bytes of a file."""

from pathlib import Path

import pytest

from service.engine.jailed.zones import CHUNK, count_odd_times

ODD = b"2020-01-02T03:04:05.123456789+05:07"


@pytest.mark.parametrize("shift", range(0, 2 * len(ODD), 3))
def test_a_time_is_counted_wherever_a_file_is_cut_into_pieces(tmp_path: Path, shift: int) -> None:
    """Once, if the end of a piece is before it, within it or behind it."""
    path = tmp_path / "a"
    path.write_bytes(b" " * (CHUNK - shift) + ODD + b" " * len(ODD))
    assert count_odd_times([path]) == 1


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2020/01/02 03:04-0207", 1),
        ("2020-01-02T03:04:05+05:30 2020-01-02T03:04:05-08 2020-01-02T03:04:05Z", 0),
        ("08:00-18:20", 0),
        ("2020-01-02T03:04:05+05:071", 0),
        ("2020-01-02T03:04:05+05:07,2020-01-02T03:04:05+05:08", 2),
    ],
)
def test_quarters_of_an_hour_and_hours_of_a_shop_are_none(tmp_path: Path, text: str, count: int) -> None:
    """The converter has zones in quarters of an hour, and a zone follows a date and a time."""
    path = tmp_path / "a"
    path.write_text(text)
    assert count_odd_times([path]) == count
