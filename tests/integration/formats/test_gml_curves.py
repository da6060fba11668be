"""Curves of GML whose radius or course the driver alone would read as another one."""

from pathlib import Path

import pytest

from service.formats.gml_radii import with_known_radii
from service.formats.left_out import CHUNK, PIECE
from service.formats.registry import find_output
from service.formats.text_checks import check_texts
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_gml_systems import document

CIRCLE = (
    '<gml:Curve srsName="{}"><gml:segments><gml:CircleByCenterPoint numArc="1"><gml:pos>{}</gml:pos>'
    "<gml:radius{}>{}</gml:radius></gml:CircleByCenterPoint></gml:segments></gml:Curve>"
)
UTM, DEGREES = ("urn:ogc:def:crs:EPSG::25832", "500000 5500000"), ("urn:ogc:def:crs:EPSG::4326", "50 10")
RADII = {
    (' uom="m"', "250"): 250,
    (' uom="M"', "250"): 250,
    (' uom="km"', "2.5"): 2500,
    (' uom="NM"', "2"): 3704,
    (' uom="[nmi_i]"', " 2 "): 3704,
    (" uom = 'urn:ogc:def:uom:EPSG::9036'", ".25"): 250,
    (' uom="http://www.opengis.net/def/uom/EPSG/0/9001"', "250"): 250,
    (' uom="[mi_i]"', "1"): 1609.344,
}
"""By the unit of a radius and the number: how many meters it has."""
UNKNOWN = "Radii of circles and arcs (1) without a unit, or in an unknown one, were read as numbers in the unit of "


async def extent(pipeline: Pipeline, path: Path) -> tuple[float, list[str]]:
    """The width of the curve in meters, and what is told of radii."""
    done = await pipeline.to("Csv", path, target_epsg=25832)
    (row,) = readers.table(done.path)
    positions = row["WKT"].partition("(")[2].rstrip(")").split(",")
    x = [float(position.split()[0]) for position in positions]
    return max(x) - min(x), [warning for warning in done.output.warnings if warning.startswith("Radii")]


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("place", [UTM, DEGREES])
async def test_radii_are_read_in_their_unit(
    pipeline: Pipeline, tmp_path: Path, radius: tuple[str, str], place: tuple[str, str]
) -> None:
    """In meters, the driver took each unit for one; in degrees, it knew some notations, and took others for degrees."""
    width, told = await extent(pipeline, document(tmp_path / "a.gml", [CIRCLE.format(*place, *radius)]))
    assert width == pytest.approx(2 * RADII[radius], rel=0.01)
    assert told == []


@pytest.mark.parametrize("unit", ["", ' uom="furlong"'])
async def test_radii_in_unknown_units_are_told(pipeline: Pipeline, tmp_path: Path, unit: str) -> None:
    """The driver takes them for numbers in the unit of coordinates."""
    width, told = await extent(pipeline, document(tmp_path / "a.gml", [CIRCLE.format(*UTM, unit, 7)]))
    assert width == pytest.approx(14, rel=0.01)
    assert [warning.startswith(UNKNOWN) for warning in told] == [True]


@pytest.mark.parametrize("unit", ["ft", "[ft_i]", "urn:ogc:def:uom:EPSG::9002"])
async def test_radii_in_feet_are_told_where_they_may_be_taken_for_meters(
    pipeline: Pipeline, tmp_path: Path, unit: str
) -> None:
    """In degrees, the driver knows feet; elsewhere it takes them for numbers in the unit of coordinates.

    Since GDAL 3.10 it knows them everywhere.
    """
    path = document(tmp_path / "a.gml", [CIRCLE.format(*UTM, f' uom="{unit}"', 100)])
    width, told = await extent(pipeline, path)
    is_known = width < 100
    assert width == pytest.approx(2 * (30.48 if is_known else 100), rel=0.01)
    assert [warning.startswith("Radii of circles and arcs in feet (1) were") for warning in told] == [True] * (
        not is_known
    )
    width, told = await extent(pipeline, document(path, [CIRCLE.format(*DEGREES, f' uom="{unit}"', 100)]))
    assert width == pytest.approx(2 * 30.48, rel=0.01)
    assert told == []


@pytest.mark.parametrize(
    ("unit", "radius", "system", "is_told"),
    [
        ("m", 100, 2263, True),
        ("m", 100, 8700, True),
        ("km", 0.1, 8700, True),
        ("ft", 100, 2263, False),
        ("m", 100, 25832, False),
    ],
)
async def test_radii_in_meters_beside_coordinates_in_feet_are_told(
    either: Pipeline, tmp_path: Path, unit: str, radius: float, system: int, *, is_told: bool
) -> None:
    """The driver takes them for feet; 8700 is a compound system."""
    place = f"urn:ogc:def:crs:EPSG::{system}", "500000 200000"
    circle = CIRCLE.format(*place, f' uom="{unit}"', radius)
    done = await either.to("GeoPackage", document(tmp_path / "a.gml", [circle]))
    told = [warning for warning in done.output.warnings if warning.startswith("Radii of circles and arcs in meters")]
    assert len(told) == is_told


async def test_geodesic_lines_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """They become straight ones, thousands of kilometers elsewhere."""
    geodesic = "<gml:GeodesicString><gml:posList>50 10 60 60</gml:posList></gml:GeodesicString>"
    curve = f'<gml:Curve srsName="{DEGREES[0]}"><gml:segments>{geodesic}</gml:segments></gml:Curve>'
    done = await pipeline.to("Csv", document(tmp_path / "a.gml", [curve]))
    assert [warning[:18] for warning in done.output.warnings] == ["Geodesic lines (1)"]


@pytest.mark.parametrize("cut", range(0, 60, 3))
def test_radii_are_written_anew_across_the_pieces_of_a_file(tmp_path: Path, cut: int) -> None:
    text = '<a></a><gml:radius uom="km">2.5</gml:radius><b></b>'
    path = tmp_path / "a.gml"
    path.write_text(" " * (PIECE - cut) + text, encoding="ascii")
    found, _ = with_known_radii(path, tmp_path / "new" / "a.gml")
    assert found.read_text(encoding="ascii").strip() == text.replace('"km">2.5', '"m">2500.0')


@pytest.mark.parametrize("text", ["<gml:radius uom='m'>1</gml:radius>", "<a:radius uom='km'>1</a:radius>", ""])
def test_a_file_with_no_such_radii_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """A value of a feature may be called so."""
    path = tmp_path / "a.gml"
    path.write_text(text, encoding="ascii")
    assert with_known_radii(path, tmp_path / "new" / "a.gml") == (path, "")


CRAFTED = (
    "ByCenterPoint>",
    "<gml:ArcByCenterPoint>",
    "<gml:ArcByCenterPoint><a>",
    "<gml:ArcByCenterPoint ",
    "ArcByCenterPoint ",
    "<gml:ArcByCenterPoint><gml:radius ",
    "<gml:radius uom='km'>1",
    "<gml:radius uom='",
    "<gml:radius uom",
    "srsName='",
    " uom='m'",
    "<a>",
)


@pytest.mark.parametrize("part", CRAFTED)
def test_each_part_of_a_crafted_file_is_passed_once(tmp_path: Path, part: str) -> None:
    """The time would grow with the square of the file's size, and nothing else of the service would run meanwhile."""
    path = tmp_path / "a.gml"
    last = "<gml:ArcByCenterPoint><gml:radius>1</gml:radius></gml:ArcByCenterPoint>"
    path.write_text("<gml:ArcByCenterPoint>" + part * (2 * CHUNK // len(part)) + "</a>" + last, encoding="ascii")
    with_known_radii(path, tmp_path / "new" / "a.gml")
    assert any(told.startswith("Radii of circles") for told in check_texts(find_output("Gml"), [path])[1])
