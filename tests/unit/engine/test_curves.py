"""Curves as lines of short segments."""

import math
import struct
from collections.abc import Sequence
from itertools import pairwise

import pytest

from service.engine.jailed.curves import straightened

Positions = Sequence[tuple[float, ...]]


def simple(code: int, positions: Positions) -> bytes:
    packed = b"".join(struct.pack(f"<{len(position)}d", *position) for position in positions)
    return struct.pack("<BII", 1, code, len(positions)) + packed


def holding(code: int, *parts: bytes) -> bytes:
    return struct.pack("<BII", 1, code, len(parts)) + b"".join(parts)


def positions_of(wkb: bytes, dimensions: int = 2) -> Positions:
    """The positions of the only line in a collection."""
    code, count = struct.unpack_from("<II", wkb, 10)
    assert code % 1000 == 2
    return list(struct.iter_unpack(f"<{dimensions}d", wkb[18 : 18 + 8 * dimensions * count]))


HALF = [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]


@pytest.mark.parametrize(
    "arc", [HALF, HALF[::-1], [(0.0, 0.0), (2.0, 0.0), (0.0, 0.0)], [(2.0, 0.0), (1.0, -1.0), (0.0, 0.0)]]
)
def test_an_arc_follows_its_circle(arc: Positions) -> None:
    """From end to end, through the middle point, in steps of at most four degrees."""
    found = positions_of(straightened(holding(7, simple(8, arc))))
    assert (found[0], found[-1]) == (arc[0], arc[-1])
    assert all(math.isclose(math.dist(position, (1, 0)), 1, abs_tol=1e-12) for position in found)
    assert min(math.dist(position, arc[1]) for position in found) < math.radians(4)
    assert max(math.dist(*pair) for pair in pairwise(found)) < math.radians(4.001)


def test_heights_change_along_an_arc() -> None:
    """Evenly."""
    found = positions_of(straightened(holding(1007, simple(1008, [(0, 0, 1), (1, 1, 2), (2, 0, 3)]))), 3)
    heights = [position[2] for position in found]
    assert (heights[0], heights[-1]) == (1, 3)
    assert heights == sorted(heights)


def test_points_on_a_line_stay() -> None:
    """Three points that are not on a circle."""
    straight = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]
    assert positions_of(straightened(holding(7, simple(8, straight)))) == straight


def test_everything_that_holds_curves_is_told_by_its_plain_type() -> None:
    """A geometry without curves is left unchanged."""
    ring = simple(8, [(0, 0), (2, 0), (0, 0)])
    plain = holding(7, simple(2, HALF), struct.pack("<BI2d", 1, 1, 5, 5))
    assert straightened(plain) == plain
    for code, plain_code, member in ((10, 3, ring), (11, 5, ring), (12, 6, holding(10, ring)), (9, 2, ring)):
        made = straightened(holding(7, holding(code, member)))
        assert struct.unpack_from("<I", made, 10)[0] == plain_code


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_what_is_cut_off_is_refused(cut: int) -> None:
    """Whatever a file claims to hold."""
    whole = holding(7, simple(8, HALF))
    with pytest.raises((struct.error, ValueError)):
        straightened(whole[:-cut])
