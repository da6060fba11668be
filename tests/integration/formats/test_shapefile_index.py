"""Which shape belongs to a record: where the .shx of a shapefile says, unless it is damaged."""

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

SHP_HEADER = 100
LENGTH_AT = 24
WORD_BYTES = 2
POINT_RECORD = 28


async def _shapefile(pipeline: Pipeline, directory: Path) -> Mapping[str, bytes]:
    """The files of a shapefile of three points at (1, 1), (2, 2) and (3, 3), by their extensions."""
    points = [point(at, at, id=at) for at in (1, 2, 3)]
    done = await pipeline.to("Shapefile", write_geojson(directory / "a.geojson", points))
    with zipfile.ZipFile(done.path) as archive:
        return {Path(name).suffix: archive.read(name) for name in archive.namelist()}


def _moved(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """`files` as left by a program that replaces the first shape: the new one is at the end, the old one stays."""
    shp, shx = files[".shp"], files[".shx"]
    first = SHP_HEADER + POINT_RECORD
    old = shp[SHP_HEADER : first - 16] + struct.pack("<2d", -9, -9)
    words = (len(shp) + POINT_RECORD) // WORD_BYTES
    whole = shp[:SHP_HEADER] + old + shp[first:] + shp[SHP_HEADER:first]
    whole = whole[:LENGTH_AT] + struct.pack(">i", words) + whole[LENGTH_AT + 4 :]
    index = shx[:SHP_HEADER] + struct.pack(">i", len(shp) // WORD_BYTES) + shx[SHP_HEADER + 4 :]
    return {**files, ".shp": whole, ".shx": index}


def _packed(path: Path, **layers: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, files in layers.items():
            for extension, content in files.items():
                archive.writestr(f"{name}{extension}", content)
    return path


def _placed(path: Path) -> list[tuple[object, object]]:
    """The ids of features and where they are."""
    return [(row["properties"]["id"], row["geometry"]["coordinates"]) for row in readers.geojson(path)]  # type: ignore[index]  # JSON is untyped


IN_PLACE = [(1, [1.0, 1.0]), (2, [2.0, 2.0]), (3, [3.0, 3.0])]
DAMAGES = {
    "an entry beyond the end": (SHP_HEADER, struct.pack(">2i", 1 << 20, 10)),
    "another length": (SHP_HEADER, struct.pack(">2i", 50, 11)),
    "an entry between shapes": (SHP_HEADER, struct.pack(">2i", 52, 10)),
    "an empty entry": (SHP_HEADER, bytes(8)),
    "an entry like the next": (SHP_HEADER, struct.pack(">2i", 64, 10)),
    "a header with fewer entries": (LENGTH_AT, struct.pack(">i", 54)),
    "a header with more entries": (LENGTH_AT, struct.pack(">i", 5000)),
}
"""Where an index differs from the right one, and its bytes there."""


async def test_a_shape_that_was_replaced_is_not_read(either: Pipeline, tmp_path: Path) -> None:
    """Programs that edit a shapefile in place leave the old shape in the .shp, and the .shx leads to the new one."""
    edited = _packed(tmp_path / "edited.zip", a=_moved(await _shapefile(either, tmp_path)))
    assert _placed((await either.to("GeoJson", edited)).path) == IN_PLACE


async def test_a_damaged_index_beside_another_shapefile_is_made_anew(either: Pipeline, tmp_path: Path) -> None:
    """And the index of the other is not."""
    whole = await _shapefile(either, tmp_path)
    both = _packed(tmp_path / "both.zip", a=_moved(whole), b={**whole, ".shx": b""})
    for layer in "ab":
        assert _placed((await either.to("GeoJson", both, layer=layer)).path) == IN_PLACE, layer


@pytest.mark.parametrize("damage", DAMAGES)
async def test_an_index_that_misleads_is_made_anew(pipeline: Pipeline, tmp_path: Path, damage: str) -> None:
    """The size of the file is right, so only its header or the shapes show the damage."""
    whole = await _shapefile(pipeline, tmp_path)
    at, wrong = DAMAGES[damage]
    index = whole[".shx"][:at] + wrong + whole[".shx"][at + len(wrong) :]
    damaged = _packed(tmp_path / "damaged.zip", a={**whole, ".shx": index})
    assert _placed((await pipeline.to("GeoJson", damaged)).path) == IN_PLACE


@pytest.mark.parametrize("left", [SHP_HEADER, SHP_HEADER + POINT_RECORD, SHP_HEADER + 3 * POINT_RECORD - 1])
async def test_shapes_that_are_cut_off_are_not_taken_for_null_shapes(
    pipeline: Pipeline, tmp_path: Path, left: int
) -> None:
    """The .dbf and the .shx are whole, so the driver alone added features without geometry."""
    whole = await _shapefile(pipeline, tmp_path)
    cut = {**whole, ".shp": whole[".shp"][:left]}
    with pytest.raises(Rejection, match=r"do not match \(shapes: [0-2], records: 3\)"):
        await pipeline.to("GeoJson", _packed(tmp_path / "cut.zip", a=cut))
    lone = tmp_path / "a.shp"
    lone.write_bytes(cut[".shp"])
    with pytest.raises(Rejection, match=f"is cut off: it has {left} of 184 bytes"):
        await pipeline.to("GeoJson", lone, source_epsg=4326)


async def test_an_entry_for_a_null_shape_may_be_empty(either: Pipeline, tmp_path: Path) -> None:
    """If the .shp has no shape for it; each other record keeps its own."""
    whole = await _shapefile(either, tmp_path)
    shp, shx = whole[".shp"], whole[".shx"]
    words = struct.pack(">i", (len(shp) - POINT_RECORD) // WORD_BYTES)
    short = shp[:LENGTH_AT] + words + shp[LENGTH_AT + 4 : SHP_HEADER] + shp[SHP_HEADER + POINT_RECORD :]
    files = {**whole, ".shp": short, ".shx": shx[:SHP_HEADER] + bytes(8) + shx[SHP_HEADER : SHP_HEADER + 16]}
    rows = readers.geojson((await either.to("GeoJson", _packed(tmp_path / "a.zip", a=files))).path)
    places = [row["geometry"] and row["geometry"]["coordinates"] for row in rows]  # type: ignore[index]  # JSON is untyped
    assert places == [None, [2, 2], [3, 3]]
