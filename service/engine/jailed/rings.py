"""The rings of areas, and which of them are in others, as `rings.c` finds it in sessions. Runs in the sandbox."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

Place = tuple[float, float]
Box = tuple[float, ...]
"""The least x and y, and the largest; nothing if there are none."""
NEAR = 1 / 64
"""How far a point in a ring is from one of its corners, as a part of the way between the corners beside it."""


class Ring:
    """A ring of an area: the box around it, a point in it, and in how many others it is.

    The point is near its leftmost position, the lowest of several, between those beside it.
    """

    def __init__(self, number: int, places: Sequence[Place]) -> None:
        self.places = places
        self.is_hole = number > 0
        self.depth = 0
        xs, ys = zip(*places, strict=True)
        self.box: tuple[float, float, float, float] = (min(xs), min(ys), max(xs), max(ys))
        (x, y) = corner = min(places)
        at = places.index(corner)
        others = [place for place in (*places[at:], *places[:at]) if place != corner]
        self.point = (
            x + ((others[0][0] + others[-1][0]) / 2 - x) * NEAR,
            y + ((others[0][1] + others[-1][1]) / 2 - y) * NEAR,
        )

    def left(self) -> float:
        """The least x of its positions."""
        return self.box[0]

    @property
    def is_counterclockwise(self) -> bool:
        """Whether it goes around so, if it has an area."""
        x, y = self.places[0]
        near = pairwise(self.places)
        return sum((xx - x) * (yyy - y) - (xxx - x) * (yy - y) for (xx, yy), (xxx, yyy) in near) > 0

    def is_around(self, x: float, y: float) -> bool:
        """Whether a point is in the ring."""
        edges = pairwise([self.places[-1], *self.places])
        crossed = [
            x < (before[0] - at[0]) * (y - at[1]) / (before[1] - at[1]) + at[0]
            for before, at in edges
            if (before[1] > y) != (at[1] > y)
        ]
        return sum(crossed) % 2 == 1


def count_around(inner_rings: Iterable[Ring], outer_rings: Iterable[Ring]) -> None:
    """Set the depth of `inner_rings`: in how many of `outer_rings` each is.

    It goes from left to right, so that rings beside each other are not compared.
    """
    waiting = sorted(outer_rings, key=Ring.left, reverse=True)
    near: list[Ring] = []
    for inner in sorted(inner_rings, key=Ring.left):
        while waiting and waiting[-1].left() <= inner.left():
            near.append(waiting.pop())
        near = [outer for outer in near if outer.box[2] >= inner.left()]
        around = (outer for outer in near if outer is not inner and is_around(outer.box, inner.box))
        inner.depth = sum(outer.is_around(*inner.point) for outer in around)


def is_around(outer: Box, inner: Box) -> bool:
    """Whether a box contains another."""
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]
