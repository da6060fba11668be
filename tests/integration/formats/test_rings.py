"""Areas in formats that store nothing but rings, which must tell by themselves which of them are holes."""

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyogrio.raw
import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats.pipeline import Json, Pipeline, feature, geometry, write_geojson

POLYGON = 3
Place = tuple[float, ...]
Area = list[list[Place]]
TOLD = "stores rings of areas, but not which of them are holes. In 1 feature, an area lies within"


def square(least: float, most: float) -> list[list[float]]:
    return [[least, least], [most, least], [most, most], [least, most], [least, least]]


AREAS: dict[str, tuple[Json, bool]] = {
    "an area within another": (geometry("MultiPolygon", [[square(0, 10)], [square(2, 4)]]), True),
    "a hole outside": (geometry("Polygon", [square(0, 10), square(20, 22)]), True),
    "a hole in a hole": (geometry("Polygon", [square(0, 10), square(2, 8), square(3, 4)]), True),
    "an area in a hole": (geometry("MultiPolygon", [[square(0, 10), square(1, 5)], [square(2, 4)]]), False),
    "areas across each other": (geometry("MultiPolygon", [[square(0, 10)], [square(8, 14)]]), False),
    "a hole": (geometry("Polygon", [square(0, 10), square(2, 4)]), False),
}


def wkt(shape: Json) -> str:
    def text(part: Any) -> str:
        is_place = not isinstance(part[0], list)
        return " ".join(map(str, part)) if is_place else f"({', '.join(map(text, part))})"

    return f"{shape['type']} {text(shape['coordinates'])}"


def areas_of(wkb: bytes) -> list[Area]:
    """The rings of each area."""
    kind, basic = divmod(struct.unpack_from("<I", wkb, 1)[0], 1000)
    size = (2, 3, 3, 4)[kind]
    at = 0 if basic == POLYGON else 9
    areas: list[Area] = []
    while at < len(wkb):
        (rings,) = struct.unpack_from("<I", wkb, at + 5)
        at += 9
        areas.append([])
        for _ in range(rings):
            (positions,) = struct.unpack_from("<I", wkb, at)
            numbers = struct.unpack_from(f"<{positions * size}d", wkb, at + 4)
            areas[-1].append([numbers[start : start + size] for start in range(0, len(numbers), size)])
            at += 4 + 8 * size * positions
    return areas


def holes_of(wkb: bytes) -> list[int]:
    """How many holes each area has, the least first."""
    return sorted(len(area) - 1 for area in areas_of(wkb))


@pytest.mark.parametrize("output", ["Shapefile", "OpenFileGdb"])
@pytest.mark.parametrize("what", AREAS)
async def test_rings_that_become_others_are_told(either: Pipeline, tmp_path: Path, what: str, output: str) -> None:
    """All others are read as they were, by another reader."""
    shape, told = AREAS[what]
    path = tmp_path / "a.csv"
    path.write_text(f'wkt\n"POLYGON ((50 50, 51 50, 51 51, 50 50))"\n"{wkt(shape)}"\n')
    done = await either.to(output, path, source_epsg=4326)
    warnings = [warning for warning in done.output.warnings if TOLD in warning]
    assert [warning.endswith("The first is feature 2.") for warning in warnings] == [True] * told
    if told:
        return  # some readers warn of such a file, and this one would of only the first
    _, _, geometries, _ = pyogrio.raw.read(f"/vsizip/{done.path}/a.{'shp' if output == 'Shapefile' else 'gdb'}")
    before = shape["coordinates"] if shape["type"] == "MultiPolygon" else [shape["coordinates"]]
    assert isinstance(before, list)
    assert holes_of(geometries[1]) == sorted(len(area) - 1 for area in before)


@pytest.mark.parametrize("spread", ["", "\n "])
@pytest.mark.parametrize("output", ["Shapefile", "OpenFileGdb", "GeoPackage"])
@pytest.mark.parametrize("what", AREAS)
async def test_rings_of_geojson_are_compared_where_it_matters(
    either: Pipeline, tmp_path: Path, what: str, output: str, spread: str
) -> None:
    """The scan of its text does not know where they lie."""
    shape, told = AREAS[what]
    path = write_geojson(tmp_path / "a.geojson", [feature(shape, n=1)])
    path.write_text(path.read_text().replace("]", f"]{spread}"))
    directory, source = either.receive(path)
    target = choose_target(source.format, output)
    async with either.engine.session(either.run, target) as run:
        look = await inspect_source(either.engine, run, source, target, directory)
    plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), either.engine.catalogue)
    assert any(TOLD in warning for warning in plan.warnings) is (told and output != "GeoPackage")


ROOF: list[Place] = [(0, 0, 5, 1), (9, 0, 6, 2), (9, 9, 7, 3), (0, 9, 8, 4), (0, 0, 5, 1)]
SHAFT: list[Place] = [(2, 2, 1, 5), (2, 4, 2, 6), (4, 4, 3, 7), (4, 2, 4, 8), (2, 2, 1, 5)]
TOWER: list[Place] = [(20, 0, 5, 1), (29, 0, 5, 2), (29, 9, 5, 3), (20, 0, 5, 1)]


def smaller(ring: list[Place], x: float, y: float) -> list[Place]:
    return [(place[0] / 9 + x, place[1] / 9 + y, *place[2:]) for place in ring]


IN_SPACE: dict[str, list[Area]] = {
    "a hole": [[ROOF, SHAFT]],
    "a hole in the direction of its area": [[ROOF, SHAFT[::-1]]],
    "a hole at one elevation": [[ROOF, [(x, y, 5, m) for x, y, _, m in SHAFT]]],
    "several areas": [[TOWER], [ROOF[::-1], SHAFT], [[(x + 50, y, z, m) for x, y, z, m in SHAFT]]],
    "holes beside and above each other, in any order": [
        [ROOF, *(smaller(SHAFT, at * 5 % 7, at * 3 % 7) for at in (6, 2, 4, 1, 3))],
        [TOWER],
    ],
    "an area in a hole": [[ROOF, SHAFT], [[(x / 4 + 2.1, y / 4 + 2.1, z, m) for x, y, z, m in SHAFT]]],
}


def edges(area: Area) -> list[list[Place]]:
    """Those of each ring, whatever their direction."""
    return [sorted(min(one + other, other + one) for one, other in pairwise(ring)) for ring in area]


@pytest.mark.filterwarnings("ignore:Measured")
@pytest.mark.parametrize("letters", ["Z", "ZM"])
@pytest.mark.parametrize("what", IN_SPACE)
async def test_holes_with_elevations_stay_holes_in_a_shapefile(
    either: Pipeline, tmp_path: Path, what: str, letters: str
) -> None:
    """GDAL 3.6 wrote those as areas whose elevations differ from those of the area around them."""
    size = 2 + len(letters)
    areas = [[[place[:size] for place in ring] for ring in area] for area in IN_SPACE[what]]
    text = ", ".join(
        f"({', '.join('(' + ', '.join(' '.join(map(str, place)) for place in ring) + ')' for ring in area)})"
        for area in areas
    )
    path = tmp_path / "a.csv"
    path.write_text(f'wkt\n"MULTIPOLYGON {letters} ({text})"\n"POLYGON {letters} EMPTY"\n')
    done = await either.to("Shapefile", path, source_epsg=4326)
    assert not [warning for warning in done.output.warnings if "rings" in warning]
    table = pyogrio.read_arrow(f"/vsizip/{done.path}/a.shp")[1]
    (wkb, empty) = table["wkb_geometry"].to_pylist()
    assert empty is None
    assert sorted(map(edges, areas_of(wkb))) == sorted(map(edges, areas))


async def test_areas_with_elevations_above_each_other_stay_areas(either: Pipeline, tmp_path: Path) -> None:
    """As the floors of a building; what programs make of them is told."""
    path = tmp_path / "a.csv"
    path.write_text(
        'wkt\n"MULTIPOLYGON Z (((0 0 1, 9 0 1, 9 9 1, 0 0 1)), ((5 1 8, 7 1 8, 7 3 8, 5 1 8)))"\n'
        '"POLYGON Z ((0 0 1, 9 0 2, 9 9 3, 0 0 1), (5 1 8, 7 1 8, 7 3 9, 5 1 8))"\n'
    )
    done = await either.to("Shapefile", path, source_epsg=4326)
    assert [warning for warning in done.output.warnings if TOLD in warning]
    first, _ = pyogrio.read_arrow(f"/vsizip/{done.path}/a.shp")[1]["wkb_geometry"].to_pylist()
    assert holes_of(first) == [0, 0]


@pytest.mark.parametrize("output", ["Shapefile", "GeoPackage"])
async def test_holes_beside_areas_above_each_other_stay_holes_or_are_told(
    either: Pipeline, tmp_path: Path, output: str
) -> None:
    """Which rings the driver of GDAL 3.6 has turned into areas does not follow from where they lie."""
    path = tmp_path / "a.csv"
    path.write_text(
        'wkt\n"MULTIPOLYGON Z (((0 0 1, 9 0 1, 9 9 1, 0 0 1)), ((5 1 8, 7 1 8, 7 3 8, 5 1 8)))"\n'
        '"POLYGON Z ((0 0 1, 9 0 2, 9 9 3, 0 0 1), (5 1 8, 7 3 9, 7 1 8, 5 1 8))"\n'
    )
    done = await either.convert(path, ConversionRequest(output=output, source_epsg=4326), verifies=True)
    told = [difference for difference in done.differences if "holes with elevations" in difference]
    if output == "GeoPackage":
        assert told == []
        return
    _, second = pyogrio.read_arrow(f"/vsizip/{done.path}/a.shp")[1]["wkb_geometry"].to_pylist()
    assert (holes_of(second) == [1]) is (told == [])


async def test_surfaces_within_others_are_told_as_areas_are(either: Pipeline, tmp_path: Path) -> None:
    """They become areas, and the second one here became a hole of the first."""
    path = tmp_path / "a.csv"
    path.write_text(
        'wkt\n"POLYHEDRALSURFACE Z (((0 0 1, 9 0 1, 9 9 1, 0 9 1, 0 0 1)), ((0 0 1, 9 0 1, 9 9 1, 0 0 1)))"\n'
    )
    done = await either.to("OpenFileGdb", path, source_epsg=4326)
    assert [warning for warning in done.output.warnings if TOLD in warning]
