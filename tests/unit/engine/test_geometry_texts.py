"""Cells of tables are matched against what geometries begin with."""

from service.engine.jailed.places import GEOMETRY_TEXT


def test_blanks_before_a_geometry_are_read_once() -> None:
    """The time would grow with the square of their number: a cell of 200,000 would take longer than a run may."""
    blanks = " " * 200_000
    assert GEOMETRY_TEXT.match(blanks) is None
    assert all(
        GEOMETRY_TEXT.match(blanks + text)
        for text in ("SRID=4326; POINT (1 2)", "POINT (1 2)", "0" * 18, '{"coordinates"')
    )
