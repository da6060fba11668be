"""Names within a GeoPackage."""

from service.engine.jailed.gpkg import spare_names


def test_spare_names_are_none_of_others_and_short() -> None:
    """However long the others are: SQLite writes all names of a table again to change one of them."""
    assert spare_names(3, ["__1", "x" * 4000, "__", "__03"]) == ["__0", "__2", "__3"]
    assert spare_names(0, ["__0"]) == []
