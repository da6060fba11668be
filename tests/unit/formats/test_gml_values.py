"""Values of GML with the names of geometries get others, wherever pieces of the file end."""

from pathlib import Path

import pytest

from service.formats.gml_values import TOLD, with_readable_names

REPEATED = 200_000
VALUES = {
    "<a:Surface>gravel</a:Surface>": "<a:Surface_>gravel</a:Surface_>",
    "<Point uom='m' > 7\n</Point >": "<Point_ uom='m' > 7\n</Point_ >",
    "<a:boundedBy>x &lt; y</a:boundedBy><a:Surface></a:Surface>": "<a:boundedBy_>x &lt; y</a:boundedBy_>"
    "<a:Surface_></a:Surface_>",
    '<a:Point b="c" xsi:nil="true"/><Surface nil="1" />': '<a:Point_ b="c" xsi:nil="true"/><Surface_ nil="1" />',
    "<Point>7</Point><Point><pos>1 2</pos></Point>": "<Point_>7</Point_><Point><pos>1 2</pos></Point>",
}
"""Values, and what becomes of them."""
KEPT = [
    "<gml:Point>7</gml:Point>",
    "<a:Surface/><a:Surface></a:Surface><a:Surface> </a:Surface>",
    "<a:SurfaceType>gravel</a:SurfaceType><a:surface>1</a:surface>",
    "<Point><pos>1 2</pos></Point><boundedBy><Envelope><lowerCorner>1 2</lowerCorner></Envelope></boundedBy>",
    "<a:Surface/>gravel</a:b>",
    '<gml:Point xsi:nil="true"/><a:Surface xsi:nil="false"/><a:SurfaceType xsi:nil="true"/>',
]


def read(directory: Path, text: str) -> tuple[str, str]:
    """What is to be read in place of a file with `text`, and what is told."""
    (directory / "a.gml").write_text(text)
    path, told = with_readable_names(directory / "a.gml", directory / "made" / "b.gml")
    return path.read_text(), told


@pytest.mark.parametrize("value", VALUES)
def test_values_get_other_names(tmp_path: Path, value: str) -> None:
    text, told = read(tmp_path, f"<a>{value}</a>")
    assert text == f"<a>{VALUES[value]}</a>"
    assert told.startswith(TOLD.partition("{")[0])


@pytest.mark.parametrize("value", KEPT)
def test_geometries_and_other_values_stay(tmp_path: Path, value: str) -> None:
    assert read(tmp_path, value) == (value, "")


@pytest.mark.parametrize("shift", range(-40, 8, 3))
def test_values_across_pieces_get_other_names(tmp_path: Path, shift: int) -> None:
    """Wherever a piece ends in one."""
    before = "<b>" + "x" * ((1 << 20) + shift) + "</b>"
    text, told = read(tmp_path, f"<a:Surface>gravel</a:Surface>{before}<a:Point>7</a:Point></a>")
    assert text.replace(before, "") == "<a:Surface_>gravel</a:Surface_><a:Point_>7</a:Point_></a>"
    assert told == TOLD.format("'Point_', 'Surface_'")


@pytest.mark.parametrize(
    "crafted",
    [
        "<Point>",
        "<Point ",
        "<Point>a",
        "<Point>a</",
        "<a:",
        "<a.b:Point> ",
        "<Point a='",
        "</",
        " ",
        "<Point nil='1'",
        " nil='1'",
    ],
)
def test_each_part_of_a_crafted_file_is_passed_once(tmp_path: Path, crafted: str) -> None:
    """The value behind it gets another name."""
    text, _ = read(tmp_path, "<Point" + crafted * REPEATED + ">\n<Surface>gravel</Surface>")
    assert text.endswith("<Surface_>gravel</Surface_>")
