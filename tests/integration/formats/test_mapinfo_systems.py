"""Systems of MapInfo that drivers mistake, such as conic ones of the states of the USA in feet."""

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyogrio
import pytest

from service.formats.request import ConversionRequest
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


FALSE_EASTING, AFFINE = struct.pack("<dd", 4321000, 3210000), b"\1"


async def placed(pipeline: Pipeline, path: Path) -> object:
    """Where the only feature of a file is."""
    done = await pipeline.to("GeoJson", path)
    assert not [warning for warning in done.output.warnings if "system" in warning]
    geometry = readers.geojson(done.path)[0]["geometry"]
    assert isinstance(geometry, dict)
    return geometry["coordinates"]


@pytest.mark.parametrize("name", SYSTEMS)
async def test_the_origin_is_read_in_the_unit_of_the_system(either: Pipeline, tmp_path: Path, name: str) -> None:
    """GDAL 3.6 took feet for meters where EPSG orders the parallels otherwise, and led to other continents.

    Later releases call a system in meters by the code of the one in feet, and place results 650 km elsewhere.
    """
    code, written, place = SYSTEMS[name]
    document = write_geojson(tmp_path / "a.geojson", [point(*place, n=1)])
    wish = ConversionRequest(output="MapInfo", target_epsg=code)
    table = await either.convert(document, wish, verifies=True)
    assert not table.differences
    known_by = pyogrio.read_info(f"/vsizip/{table.path}/{table.path.stem}.tab")["crs"]
    assert known_by == f"EPSG:{code}" or not known_by.startswith("EPSG:")
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


@pytest.mark.parametrize(
    ("code", "changes", "words"),
    [
        (3035, {0x1A8: FALSE_EASTING}, ["4321000 and 3210000"]),
        (3035, {0x1A0: FALSE_EASTING[:8]}, []),
        (3035, {0x16D: b"\x1a", 0x1A0: FALSE_EASTING}, ["4321000 and 3210000"]),
        (25832, {}, []),
        (25832, {0x200: AFFINE}, ["(Affine)"]),
        (25832, {0x104: b"\x2c\1", 0x200: AFFINE}, []),
        (3035, {0x1A8: FALSE_EASTING, 0x200: AFFINE}, ["(Affine)", "4321000 and 3210000"]),
    ],
)
async def test_so_is_one_of_a_binary_table(
    pipeline: Pipeline, tmp_path: Path, code: int, changes: Mapping[int, bytes], words: Sequence[str]
) -> None:
    """What the header of a .map says of its system and the driver does not follow was not told."""
    document = write_geojson(tmp_path / "a.geojson", [point(9, 48, n=1)])
    table = await pipeline.to("MapInfo", document, target_epsg=code)
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(table.path) as written, zipfile.ZipFile(path, "w") as archive:
        for name in written.namelist():
            content = bytearray(written.read(name))
            for start, bytes_there in changes.items() if name.endswith(".map") else ():
                content[start : start + len(bytes_there)] = bytes_there
            archive.writestr(name, bytes(content))
    done = await pipeline.to("Csv", path)
    told = [warning for warning in done.output.warnings if "of the .map" in warning]
    assert len(told) == len(words)
    assert all(word in warning for word, warning in zip(words, told, strict=True))
