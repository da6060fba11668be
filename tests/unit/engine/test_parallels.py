"""The order of the parallels of conic systems of MapInfo."""

import struct

import pytest

from service.engine.jailed.parallels import (
    CONIC,
    MAGIC,
    MAGIC_AT,
    ORIGIN,
    ORIGIN_AT,
    PARALLELS_AT,
    PROJECTION_AT,
    swapped,
    swapped_in_america,
)

TEXTS = {
    b'coordsys earth projection 3,62,"ft",-74,40.5, 40.6 ,+4.1e1,1,2': (
        b'coordsys earth projection 3,62,"ft",-74,40.5, +4.1e1 ,40.6,1,2'
    ),
    b'Version 300\r\n CoordSys Earth Projection 3, 74, "m", 1, 2, -30, -40, 5, 6': (
        b'Version 300\r\n CoordSys Earth Projection 3, 74, "m", 1, 2, -40, -30, 5, 6'
    ),
    b'CoordSys Earth Projection 3, 74, "m", 1, 2, 40, 30, 5, 6': None,
    b'CoordSys Earth Projection 3, 74, "m", 1, 2, 37.2666666667, 38.5666666667, 5, 6': None,
    b'CoordSys Earth Projection 3, 74, "m", 1, 2, 38.5666666667, 37.2666666667, 5, 6': (
        b'CoordSys Earth Projection 3, 74, "m", 1, 2, 37.2666666667, 38.5666666667, 5, 6'
    ),
    b'CoordSys Earth Projection 9, 74, "m", 1, 2, 30, 40, 5, 6': None,
    b'CoordSys Earth Projection 33, 74, "m", 1, 2, 30, 40, 5, 6': None,
    b'CoordSys Earth Projection 3, 74, "m", 1, 2, 30, 4-0, 5, 6': None,
    b'Columns 1\n  CoordSys "Earth Projection 3, 74"': None,
}
"""Beginnings of a .mif, and what they become, None if they stay."""


@pytest.mark.parametrize("text", TEXTS)
def test_the_greater_parallel_comes_first_in_a_mif(text: bytes) -> None:
    """Other systems stay as they are."""
    assert swapped(text) == (TEXTS[text] or text)
    assert swapped(swapped(text)) == swapped(text)


@pytest.mark.parametrize(("kind", "parallels"), [(CONIC, (30.0, 40.0)), (CONIC, (40.0, 30.0)), (9, (30.0, 40.0))])
def test_the_greater_parallel_comes_first_in_a_map(kind: int, parallels: tuple[float, float]) -> None:
    """A header that is cut off stays, too."""
    head = bytearray(1024)
    head[MAGIC_AT : MAGIC_AT + len(MAGIC)] = MAGIC
    head[PROJECTION_AT] = kind
    struct.pack_into("<dd", head, PARALLELS_AT, *parallels)
    found = struct.unpack_from("<dd", swapped(bytes(head)), PARALLELS_AT)
    assert found == (tuple(sorted(parallels, reverse=True)) if kind == CONIC else parallels)
    assert swapped(bytes(head[: PARALLELS_AT + 9])) == head[: PARALLELS_AT + 9]


@pytest.mark.parametrize(("origin", "is_swapped"), [((-71.5, 41), True), ((3, 46.5), False), ((-60, -30), False)])
def test_results_are_swapped_where_states_are(origin: tuple[float, float], *, is_swapped: bool) -> None:
    """Elsewhere, MapInfo may know systems by the parallels in its own order. A header that is cut off stays, too."""
    head = bytearray(1024)
    head[MAGIC_AT : MAGIC_AT + len(MAGIC)] = MAGIC
    head[PROJECTION_AT] = CONIC
    ORIGIN.pack_into(head, ORIGIN_AT, *origin)
    struct.pack_into("<dd", head, PARALLELS_AT, 30, 40)
    assert swapped_in_america(bytes(head)) == (swapped(bytes(head)) if is_swapped else head)
    assert swapped_in_america(bytes(head[: PARALLELS_AT + 9])) == head[: PARALLELS_AT + 9]


def test_long_lines_take_no_longer_than_they_are() -> None:
    """What looks like numbers for long is read once."""
    text = b'CoordSys Earth Projection 3, 74, "m", ' + b"1" * 500_000 + b"," + b" " * 500_000 + b"2" * 500_000
    assert swapped(text) == text
