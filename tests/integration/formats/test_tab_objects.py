"""Objects and rows of binary MapInfo tables that the driver changes or leaves out."""

import struct
import zipfile
from pathlib import Path

import pytest

from service.formats.source import Part
from service.formats.tab_objects import tab_warnings
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

CURVES = "Arcs, ellipses and rounded rectangles (3) became lines and areas of short segments."
BLOCK, HEAD, OBJECTS = 512, 20, 2
"""The length of a block of a .map, of its head, and the first byte of one with objects."""
HALF = 2_000_000


async def table(pipeline: Pipeline, directory: Path, rows: int = 5) -> dict[str, bytes]:
    """The files of a table of points, by their extensions."""
    path = write_geojson(directory / "a.geojson", [point(number / 4, number / 8, n=number) for number in range(rows)])
    done = await pipeline.to("MapInfo", path)
    with zipfile.ZipFile(done.path) as packed:
        return {Path(name).suffix: packed.read(name) for name in packed.namelist()}


def packed(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for extension, content in files.items():
            archive.writestr(f"a{extension}", content)
    return path


def with_curves(files: dict[str, bytes]) -> dict[str, bytes]:
    """The table with an arc, an ellipse, a rounded rectangle, a rectangle and a point in place of its points."""
    shapes = bytearray(files[".map"])
    at = next(start for start in range(BLOCK, len(shapes), BLOCK) if shapes[start] == OBJECTS)
    x, y = struct.unpack_from("<ii", shapes, at + 4)
    box = struct.pack("<4i", x - HALF, y - HALF, x + HALF, y + HALF)
    objects = (
        b"\x0b\1\0\0\0" + struct.pack("<hh", 0, 900) + box + box + b"\0",
        b"\x1a\2\0\0\0" + box + b"\0\0",
        b"\x17\3\0\0\0" + struct.pack("<ii", HALF // 2, HALF // 2) + box + b"\0\0",
        b"\x14\4\0\0\0" + box + b"\0\0",
        b"\x02\5\0\0\0" + struct.pack("<ii", x, y) + b"\0",
    )
    block = shapes[at : at + HEAD]
    offsets = []
    for item in objects:
        offsets.append(at + len(block))
        block += item
    struct.pack_into("<h", block, 2, len(block) - HEAD)
    shapes[at : at + BLOCK] = block.ljust(BLOCK, b"\0")
    return {**files, ".map": bytes(shapes), ".id": struct.pack("<5i", *offsets)}


async def test_curves_of_a_binary_table_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Rectangles and points are none."""
    files = with_curves(await table(either, tmp_path))
    done = await either.to("Csv", packed(tmp_path / "a.zip", files))
    kinds = [row["WKT"].partition(" ")[0] for row in readers.table(done.path)]
    assert kinds == ["LINESTRING", "POLYGON", "POLYGON", "POLYGON", "POINT"]
    assert done.output.warnings == (CURVES,)


async def test_rows_beyond_those_that_a_table_counts_are_told(either: Pipeline, tmp_path: Path) -> None:
    """The driver stops at the number in the header."""
    files = await table(either, tmp_path)
    rows = bytearray(files[".dat"])
    struct.pack_into("<I", rows, 4, 3)
    done = await either.to("Csv", packed(tmp_path / "a.zip", {**files, ".dat": bytes(rows)}))
    assert [row["n"] for row in readers.table(done.path)] == ["0", "1", "2"]
    told = "The .dat of 'a' says that it has only 3 rows; what is beyond them was left out: 2 rows."
    assert done.output.warnings == (told,)


@pytest.mark.parametrize("rows", [1, 300])
async def test_a_whole_table_is_not_told_of(pipeline: Pipeline, tmp_path: Path, rows: int) -> None:
    done = await pipeline.to("Csv", packed(tmp_path / "a.zip", await table(pipeline, tmp_path, rows)))
    assert done.output.warnings == ()


@pytest.mark.parametrize(
    "files",
    [
        {".dat": b"", ".map": b"", ".id": b""},
        {".dat": bytes(32), ".map": b"\x0b", ".id": bytes(7)},
        {".dat": b"\0" * 4 + b"\xff" * 28, ".map": b"\x0b" * 9, ".id": b"\xff" * 9},
    ],
)
def test_damaged_tables_are_left_to_the_driver(tmp_path: Path, files: dict[str, bytes]) -> None:
    """Whatever their numbers are."""
    paths = {extension: tmp_path / f"a{extension}" for extension in files}
    for extension, content in files.items():
        paths[extension].write_bytes(content)
    assert list(tab_warnings(Part(paths, "a"))) == []
