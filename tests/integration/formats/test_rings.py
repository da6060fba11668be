"""Areas in formats that store nothing but rings, which must tell by themselves which of them are holes."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pyogrio.raw
import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats.pipeline import Json, Pipeline, feature, geometry, write_geojson

POLYGON, MULTI_POLYGON = 3, 6
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
    def text(part: Sequence[object]) -> str:
        is_place = not isinstance(part[0], list)
        return " ".join(map(str, part)) if is_place else f"({', '.join(map(text, part))})"  # type: ignore[arg-type]

    return f"{shape['type']} {text(shape['coordinates'])}"  # type: ignore[arg-type]


def holes_of(wkb: bytes) -> list[int]:
    """How many holes each area has, the least first."""
    areas = [wkb] if wkb[1] == POLYGON else []
    at = 9
    while wkb[1] == MULTI_POLYGON and at < len(wkb):
        areas.append(wkb[at:])
        (rings,) = struct.unpack_from("<I", wkb, at + 5)
        at += 9
        for _ in range(rings):
            (positions,) = struct.unpack_from("<I", wkb, at)
            at += 4 + 16 * positions
    return sorted(struct.unpack_from("<I", area, 5)[0] - 1 for area in areas)


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
    _, _, geometries, _ = pyogrio.raw.read(f"/vsizip/{done.path}/a.{'shp' if output == 'Shapefile' else 'gdb'}")
    before = shape["coordinates"] if shape["type"] == "MultiPolygon" else [shape["coordinates"]]
    assert isinstance(before, list)
    assert (holes_of(geometries[1]) != sorted(len(area) - 1 for area in before)) is told


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
