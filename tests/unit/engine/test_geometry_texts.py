"""Cells of tables are matched against what geometries begin with."""

from service.engine.jailed.places import GEOMETRY_TEXT, as_read


def test_blanks_before_a_geometry_are_read_once() -> None:
    """The time would grow with the square of their number: a cell of 200,000 would take longer than a run may."""
    blanks = " " * 200_000
    assert GEOMETRY_TEXT.match(blanks) is None
    assert all(
        GEOMETRY_TEXT.match(blanks + text)
        for text in ("SRID=4326; POINT (1 2)", "POINT (1 2)", "0" * 18, '{"coordinates"')
    )


def test_blanks_behind_a_z_are_read_once() -> None:
    """As are those before a system that is not there."""
    text = "POINTZ" + " " * 200_000 + "Z" * 200_000
    assert as_read(text) == text
    assert as_read("POINTZ" + " " * 200_000 + "(1 2 3)").startswith("POINT Z")
