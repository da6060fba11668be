"""Column names of shapefiles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.dbf_names import NAME_BYTES, shortened, written_names


def test_a_short_name_stays() -> None:
    """Names within ten bytes are written unchanged."""
    assert written_names(["name", "Population"]) == ("name", "Population")


def test_a_name_is_cut_between_characters() -> None:
    """Ten bytes of UTF-8, never part of a character."""
    assert shortened("人口密度統計") == "人口密"
    assert shortened("population_2020") == "population"


def test_colliding_names_get_numbers() -> None:
    """Every column keeps a name of its own, whatever its case."""
    names = ("population_2020", "population_2021", "POPULATION_X")
    assert written_names(names) == ("population", "populati_1", "POPULATI_2")


def test_a_number_takes_no_other_columns_name() -> None:
    """A column that already has the numbered name keeps it."""
    assert written_names(["population_1", "population_2", "populati_1"]) == ("population", "populati_2", "populati_1")


def test_thousands_of_columns_get_numbers() -> None:
    """To try the numbers of each anew would take minutes, in which nothing else of the service runs."""
    written = written_names(["Population", *["population"] * 30_000])
    assert written[:3] == ("Population", "populati_1", "populati_2")
    assert written[-1] == "popu_30000"


def test_what_a_dbf_cannot_hold_is_replaced() -> None:
    """Colons and control characters become underscores, and a name is never empty."""
    assert written_names(["a:b", "a\nb", ""]) == ("a_b", "a_b_1", "field")


@pytest.mark.no_cover
@given(st.lists(st.text(max_size=14), max_size=40))
def test_names_fit_and_differ(names: list[str]) -> None:
    """For any input, the names fit and no two are equal."""
    written = written_names(names)
    assert len(written) == len(names)
    assert len({name.casefold() for name in written}) == len(names)
    assert all(0 < len(name.encode("utf-8", "replace")) <= NAME_BYTES for name in written)
