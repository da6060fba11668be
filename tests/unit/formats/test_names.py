"""Names of files, layers and columns in outputs."""

from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.format import ColumnRule
from service.formats.names import column_names, element_name, free_name, safe_name, shown, stem_of, unique, xml_name


@pytest.mark.parametrize(
    ("given_name", "stem"),
    [
        ("my places.geojson", "my_places"),
        ("C:\\data\\Straßen.GPKG", "Straßen"),
        ("../../etc/passwd", "passwd"),
        (".geojson", "geojson"),
        ("a.b.shp", "a.b"),
        ("--rf.csv", "rf"),
        ("日本.kml", "日本"),
        ("\x00\n", "data"),
        ("", "data"),
    ],
)
def test_stem(given_name: str, stem: str) -> None:
    """A stem is a safe, recognizable part of the client's file name."""
    assert stem_of(given_name) == stem


@given(st.text())
def test_a_safe_name_is_safe(text: str) -> None:
    """It cannot leave its directory, look like an option, be hidden, or be too long for a file system."""
    name = safe_name(text)
    assert name
    assert "/" not in name
    assert "\\" not in name
    assert name[0] not in ".-"
    assert len(name.encode()) <= 60


@given(st.lists(st.text(max_size=5), max_size=30))
def test_unique_names_differ(names: list[str]) -> None:
    """Ignoring case."""
    assert len({name.casefold() for name in unique(names)}) == len(names)


@pytest.mark.parametrize(
    ("name", "written"),
    [("a<b", "a_b"), ("1st", "_1st"), ("xmlns", "_xmlns"), ("größe", "größe"), ("", "_"), ("-a", "_-a")],
)
def test_xml_names(name: str, written: str) -> None:
    """Columns become valid XML names."""
    assert xml_name(name) == written


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("größe", "größe"),
        ("Județ", "Judet"),
        ("m²", "m2"),
        ("ﬁǅſ", "fiDzs"),
        ("人口２０", "人口20"),
        ("𠮷x", "_x"),
        ("ʰa", "ha"),
        ("\u0301\ud800", "__"),
        ("ー", "_ー"),
        ("", "_"),
    ],
)
def test_names_of_elements(name: str, written: str) -> None:
    """Without the characters that most parsers refuse there, although they are letters or digits."""
    assert element_name(name) == written
    expat.ParserCreate().Parse(f"<{element_name(name)}/>", True)


def test_names_of_members_differ_in_more_than_the_case_of_ascii() -> None:
    """The converter takes others for one, and numbers them; no number makes one of the other names."""
    names = ("name", "Name", "ä", "Ä", "NAME", "Name2", "name3")
    assert column_names(ColumnRule.MEMBER, names) == ("name", "Name4", "ä", "Ä", "NAME5", "Name2", "name3")
    assert column_names(ColumnRule.MEMBER, ["", "a"]) == ("", "a")


def test_gml_names() -> None:
    """Names of XML without hyphens, which the driver would replace, all different."""
    assert column_names(ColumnRule.GML, ["marker-color", "a_b", "a-b", "-a"]) == ("marker_color", "a_b", "a_b_2", "__a")


def test_mapinfo_names() -> None:
    """Letters without diacritics, at most 31, all different, and no digit first, which the driver would replace."""
    assert column_names(ColumnRule.MAPINFO, ["größe", "grosse", "a b", "a-b", "x" * 40, "2020", "1" * 31]) == (
        "gro_e",
        "grosse",
        "a_b",
        "a_b_2",
        "x" * 31,
        "_2020",
        "_" + "1" * 30,
    )


def test_the_target_gives_way_to_columns() -> None:
    """A column with the target's own name keeps it."""
    assert free_name(("fid", "ogc_fid"), ["FID", "name"]) == "ogc_fid"
    assert free_name(("fid",), ["fid"]) == "fid_1"


def test_shown_text_is_on_one_line() -> None:
    """Untrusted text in a message is printable and short."""
    assert shown("a\x1b[31m\n" + "b" * 100).startswith("a?[31m?bbb")
    assert len(shown("b" * 1000)) == 61


def test_thousands_of_names_get_numbers() -> None:
    """To try the numbers of each anew would take minutes, in which nothing else of the service runs."""
    assert unique(["a"] * 30_000)[-1] == "a_30000"


@pytest.mark.parametrize("rule", ColumnRule)
def test_accents_without_end_are_not_brought_into_order(rule: ColumnRule) -> None:
    """The time of that grows with the square of their number; no target keeps as many."""
    name = "a" + "\u0300\u0327" * 50_000
    assert len(set(column_names(rule, [name, f"{name}b", "c"]))) == 3
    assert safe_name(name) == "\u00e0"
