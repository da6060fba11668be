"""Whether the index of a shapefile leads to its shapes."""

import struct
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pytest

from service.formats.shx import ENTRIES_AT_ONCE, ENTRY, FIRST_SHAPE, HEADER_BYTES, is_whole

POINT, LINE = 10, 40
"""How many words the content of a shape has."""


def files(directory: Path, lengths: Sequence[int]) -> tuple[Path, Path]:
    """A .shx and its .shp with shapes of `lengths`."""
    starts = accumulate(lengths, lambda start, length: start + 4 + length, initial=FIRST_SHAPE)
    entries = b"".join(struct.pack(">2I", *entry) for entry in zip(starts, lengths, strict=False))
    words = (HEADER_BYTES + len(entries)) // 2
    shx, shp = directory / "a.shx", directory / "a.shp"
    shx.write_bytes(struct.pack(">I20xI72x", 9994, words) + entries)
    shapes = (struct.pack(">2I", number, length) + bytes(2 * length) for number, length in enumerate(lengths, 1))
    shp.write_bytes(bytes(HEADER_BYTES) + b"".join(shapes))
    return shx, shp


@pytest.mark.parametrize("lengths", [[POINT], [POINT] * 3, [POINT, LINE, POINT], [POINT] * (ENTRIES_AT_ONCE + 1)])
def test_an_index_of_shapes_one_behind_the_other_is_whole(tmp_path: Path, lengths: Sequence[int]) -> None:
    """Of one length or of several."""
    assert is_whole(*files(tmp_path, lengths))


@pytest.mark.parametrize("lengths", [[POINT] * 3, [POINT, LINE, POINT]])
@pytest.mark.parametrize("entry", range(3))
@pytest.mark.parametrize("place", range(ENTRY.size))
def test_an_index_of_which_a_byte_is_wrong_is_not_whole(
    tmp_path: Path, lengths: Sequence[int], entry: int, place: int
) -> None:
    """Whether it says where a shape is, or how long."""
    shx, shp = files(tmp_path, lengths)
    index = bytearray(shx.read_bytes())
    index[HEADER_BYTES + entry * ENTRY.size + place] ^= 1
    shx.write_bytes(index)
    assert not is_whole(shx, shp)


def test_an_index_of_shapes_that_say_another_length_is_not_whole(tmp_path: Path) -> None:
    """Nor of a file that ends within the last shape."""
    shx, shp = files(tmp_path, [POINT] * 3)
    shapes = shp.read_bytes()
    for place in range(4):
        wrong = bytearray(shapes)
        wrong[HEADER_BYTES + 28 + 4 + place] ^= 1
        shp.write_bytes(wrong)
        assert not is_whole(shx, shp)
    shp.write_bytes(shapes[:-1])
    assert not is_whole(shx, shp)
