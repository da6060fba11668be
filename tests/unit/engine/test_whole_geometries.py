"""Geometries in WKT that span lines."""

import pytest

from service.engine.jailed.whole_geometries import whole_geometries

OPEN = "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (1 2, 3 4)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["POLYGON ((0 0, 1 0,", "", " 1 1, 0 0))", "POINT (1 2)"], ["POLYGON ((0 0, 1 0, 1 1, 0 0))", "POINT (1 2)"]),
        (
            ["GEOMETRYCOLLECTION (", "POINT (1 2),", "", "POINT (3 4))"],
            ["GEOMETRYCOLLECTION ( POINT (1 2), POINT (3 4))"],
        ),
        ([OPEN, "a line", "POINT (5 6)", "POINT (7 8)"], [f"{OPEN} a line", "POINT (5 6)", "POINT (7 8)"]),
        ([f"{OPEN},", "POINT (5 6),", "POINT (7 8)"], [f"{OPEN},", "POINT (5 6),", "POINT (7 8)"]),
        (["POLYGON ((0 0,", "1 0"], ["POLYGON ((0 0, 1 0"]),
    ],
)
def test_a_geometry_that_is_not_closed_takes_no_others_with_it(lines: list[str], expected: list[str]) -> None:
    """They are geometries of their own, unless they may be its parts; lines are joined only where one goes on."""
    assert list(whole_geometries(lines)) == expected
