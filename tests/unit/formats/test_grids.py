"""Which grid is missing for an accurate change of datum."""

from math import inf

import pytest
from msgspec.structs import replace

from service.formats.grids import Extent, LackingGrid, Operation, is_same_everywhere, lacking_grid, size

WORLD = (-180.0, -90.0, 180.0, 90.0)
DATA = (10.0, 40.0, 20.0, 50.0)


def operation(meters: float, grid: str = "", area: Extent = WORLD, steps: int = 1) -> Operation:
    """An operation of such an accuracy, whose grid is missing if it has one."""
    return Operation({area}, {str(step): meters / steps for step in range(steps)}, {grid} if grid else set())


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        ([], None),
        ([operation(5.0)], None),
        ([operation(5.0), operation(0.1, "a.tif")], LackingGrid("a.tif", 0.1, 5.0)),
        ([operation(5.0), operation(0.1, "a.tif", steps=2)], LackingGrid("a.tif", 0.1, 5.0)),
        ([operation(0.1, "a.tif")], LackingGrid("a.tif", 0.1, inf)),
        ([operation(5.0), operation(0.2), operation(0.1001, "a.tif")], None),
        ([operation(2.0), operation(1.0, "a.tif")], LackingGrid("a.tif", 1.0, 2.0)),
        ([operation(4.0), operation(2.0, "a.tif")], None),
        ([operation(7.0), operation(2.0, "a.tif")], LackingGrid("a.tif", 2.0, 7.0)),
    ],
)
def test_a_grid_counts_if_much_accuracy_is_lost_without_it(
    operations: list[Operation], found: LackingGrid | None
) -> None:
    """Twice, and to a meter or by more than two; nobody needs to know of others."""
    assert lacking_grid(operations, DATA) == found


@pytest.mark.parametrize(
    ("others", "counts"), [([], True), ([operation(5.0)], False), ([operation(2.0, "b.tif")], False)]
)
def test_a_grid_that_only_its_makers_have_counts_where_there_is_no_other_way(
    others: list[Operation], *, counts: bool
) -> None:
    """Otherwise, nobody can do much with its name."""
    rare = replace(operation(0.1, "a.gsb"), is_obtainable=False)
    found = lacking_grid([rare, *others], DATA)
    assert (found == LackingGrid("a.gsb", 0.1, inf)) is counts


@pytest.mark.parametrize(
    ("area", "counts"),
    [
        (DATA, True),
        ((10.0, 40.0, 17.0, 50.0), True),
        ((10.0, 40.0, 12.0, 50.0), False),
        ((30.0, 40.0, 40.0, 50.0), False),
        ((170.0, 40.0, 40.0, 50.0), True),
    ],
)
def test_a_grid_counts_where_most_places_are(area: Extent, *, counts: bool) -> None:
    """An area may cross the date line."""
    assert bool(lacking_grid([operation(5.0), operation(0.1, "a.tif", area)], DATA)) is counts


def test_places_may_be_on_both_sides_of_the_date_line() -> None:
    """Those of a system for an area there."""
    fiji = (176.0, -20.0, -178.0, -12.0)
    assert lacking_grid([operation(5.0), operation(0.1, "a.tif", (170.0, -30.0, -170.0, -10.0))], fiji)
    assert not lacking_grid([operation(5.0), operation(0.1, "a.tif", (-170.0, -30.0, 170.0, -10.0))], fiji)


def test_places_may_lack_different_grids() -> None:
    """One of them, each their own, or one none; those to which no operation applies do not count."""
    everywhere, west, east = operation(0.1, "a.tif"), (10.0, 40.0, 15.0, 50.0), (15.0, 40.0, 20.0, 50.0)
    assert is_same_everywhere([operation(5.0)], DATA)
    assert is_same_everywhere([operation(5.0), everywhere], DATA)
    assert is_same_everywhere([operation(5.0, area=west), operation(0.1, "a.tif", west)], DATA)
    assert not is_same_everywhere([operation(5.0), operation(0.1, "a.tif", west)], DATA)
    assert not is_same_everywhere([everywhere, operation(0.01, "b.tif", east)], DATA)


def test_the_size_of_an_area_may_be_across_the_date_line() -> None:
    assert size(DATA) == 100
    assert size((176.0, -20.0, -178.0, -12.0)) == 48
