"""Conic systems of MapInfo in feet, such as those of the states of the USA."""

import zipfile
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

SYSTEMS = {
    "Texas": (
        2277,
        '3, 74, "survey ft", -100.3333333333, 29.6666666667, 30.1166666667, 31.8833333333, 2296583.3333333, 9842500',
        (-97.75, 30.25),
    ),
    "New York": (2263, '3, 74, "survey ft", -74, 40.1666666667, 40.6666666667, 41.0333333333, 984250, 0', (-74, 40.75)),
    "Michigan": (
        2253,
        '3, 74, "ft", -84.3666666667, 41.5, 42.1, 43.6666666667, 13123359.5800525, 0',
        (-84, 42.5),
    ),
    "the south of Kansas": (
        3420,
        '3, 74, "survey ft", -98.5, 36.6666666667, 37.2666666667, 38.5666666667, 1312333.3333333, 1312333.3333333',
        (-98, 37.5),
    ),
    "California in meters": (
        26945,
        '3,74,"m",-118,33.5,34.0333333333,35.4666666667,2000000,500000',
        (-118.25, 34),
    ),
}
"""Codes, how a .mif says the same, and a place."""


async def placed(pipeline: Pipeline, path: Path) -> object:
    """Where the only feature of a file is."""
    done = await pipeline.to("GeoJson", path)
    assert not [warning for warning in done.output.warnings if "system" in warning]
    geometry = readers.geojson(done.path)[0]["geometry"]
    assert isinstance(geometry, dict)
    return geometry["coordinates"]


@pytest.mark.parametrize("name", SYSTEMS)
async def test_the_origin_is_read_in_the_unit_of_the_system(either: Pipeline, tmp_path: Path, name: str) -> None:
    """GDAL 3.6 took feet for meters where EPSG orders the parallels otherwise, and led to other continents."""
    code, written, place = SYSTEMS[name]
    table = await either.to("MapInfo", write_geojson(tmp_path / "a.geojson", [point(*place, n=1)]), target_epsg=code)
    assert await placed(either, table.path) == pytest.approx(place, abs=1e-5)
    csv = await either.to("Csv", write_geojson(tmp_path / "b.geojson", [point(*place, n=1)]), target_epsg=code)
    there = readers.table(csv.path)[0]["WKT"].strip("POINT ()")
    texts = tmp_path / "a.zip"
    with zipfile.ZipFile(texts, "w") as archive:
        head = f'Version 300\nCharset "Neutral"\nDelimiter ","\nCoordSys Earth Projection {written}\n'
        archive.writestr("a.mif", f"{head}Columns 1\n  n Integer\nData\n\nPoint {there}\n")
        archive.writestr("a.mid", "1\n")
    assert await placed(either, texts) == pytest.approx(place, abs=1e-5)


@pytest.mark.parametrize(
    ("system", "count"),
    [
        ('29, 115, "m", 10, 52, 90, 4321000, 3210000', 1),
        ('26, 104, "m", -43, -2, 0, 10000000', 1),
        ('28, 104, "m", 10, 52, 90, 1, 2 Bounds (0, 0) (9, 9)', 1),
        ('29, 115, "m", 10, 52, 90, 0.0, 0', 0),
        ('29, 115, "m", 10, 52, 90', 0),
        ('8, 104, "m", 9, 0, 0.9996, 500000, 100', 0),
    ],
)
async def test_an_origin_that_is_not_read_is_told(pipeline: Pipeline, tmp_path: Path, system: str, count: int) -> None:
    """Places in MapInfo's system of Europe were 4,000 km off, without a word."""
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        head = f'Version 300\nCharset "Neutral"\nDelimiter ","\nCoordSys Earth Projection {system}\n'
        archive.writestr("a.mif", f"{head}Columns 1\n  n Integer\nData\n\nPoint 4321 3210\n")
        archive.writestr("a.mid", "1\n")
    done = await pipeline.to("GeoJson", path)
    assert sum("false easting" in warning for warning in done.output.warnings) == count
