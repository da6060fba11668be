"""Parts of a file."""

import io
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.blocking import INLINE_BYTES
from service.storage.upload import FileSlice

CONTENT = bytes(range(100))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BinaryIO]:
    """An open file of a hundred bytes."""
    path: Path = tmp_path_factory.mktemp("upload") / "file"
    path.write_bytes(CONTENT)
    with path.open("rb") as opened:
        yield opened


@given(start=st.integers(0, 100), size=st.integers(0, 100), chunk=st.integers(1, 40))
def test_a_slice_is_that_part_of_the_file(file: BinaryIO, start: int, size: int, chunk: int) -> None:
    """Read at once or in pieces, and again after seeking back, as retries do."""
    size = min(size, 100 - start)
    part = FileSlice(file, start, size)
    assert part.read() == CONTENT[start : start + size]
    part.seek(0)
    assert b"".join(iter(lambda: part.read(chunk), b"")) == CONTENT[start : start + size]
    assert part.tell() == size == len(part)
    assert part.sha256() == sha256(CONTENT[start : start + size]).digest()


def test_slices_of_one_file_do_not_disturb_each_other(file: BinaryIO) -> None:
    """Each has its own position."""
    first, second = FileSlice(file, 0, 50), FileSlice(file, 50, 50)
    assert [first.read(1), second.read(1), first.read(1)] == [CONTENT[:1], CONTENT[50:51], CONTENT[1:2]]


def test_a_slice_knows_where_it_ends(file: BinaryIO) -> None:
    """The HTTP client determines the length by seeking to the end and back."""
    part = FileSlice(file, 10, 30)
    assert part.seek(0, io.SEEK_END) == 30
    assert part.read(1) == b""
    assert part.seek(-1, io.SEEK_CUR) == 29
    assert part.read(5) == CONTENT[39:40]


async def test_a_slice_is_sent_whole_as_often_as_it_is_asked_for(tmp_path: Path) -> None:
    """Wherever it was read before, and in pieces, which bound the memory."""
    content = bytes(range(256)) * 10_000
    (path := tmp_path / "file").write_bytes(content)
    with path.open("rb") as opened:
        part = FileSlice(opened, 1000, len(content) - 2000)
        part.seek(500)
        for _ in range(2):
            pieces = [piece async for piece in part]
            assert b"".join(pieces) == content[1000:-1000]
            assert [len(piece) for piece in pieces[:-1]] == [INLINE_BYTES] * (len(pieces) - 1)
