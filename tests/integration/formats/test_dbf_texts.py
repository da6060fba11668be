"""Texts of a .dbf that its driver cuts."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from service.formats.dbf_columns import CHUNK, DbfColumn
from service.formats.dbf_texts import cut_texts
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_dbf_columns import shapefile

BLANKS = "Texts of 'c' in 'a' ({}) lost the blanks at their beginning."
ZEROS = "Texts of 'c' in 'a' ({}) were cut at a zero byte (NUL)."
CELLS = {
    "texts": ([b"ab cd", b"", b"ab\0\0", b"\0\0\0\0\0", b"ab \0 "], ()),
    "blanks": ([b"ab", b"", b"  ab", b"    7"], (BLANKS.format("2, first in feature 3"),)),
    "zeros": ([b"ab", b"ab\0cd", b"\0x", b"a\0\0 b"], (ZEROS.format("3, first in feature 2"),)),
    "both": ([b" \na\0x"], (BLANKS.format("1, first in feature 1"), ZEROS.format("1, first in feature 1"))),
}
"""The texts of a column, and what is told of them."""


@pytest.mark.parametrize("name", CELLS)
async def test_texts_that_are_not_read_whole_are_counted(either: Pipeline, tmp_path: Path, name: str) -> None:
    """What is behind a zero byte, and blanks before a text, was lost without a word."""
    cells, told = CELLS[name]
    path = await shapefile(either, tmp_path, "C", cells)
    assert (await either.to("Csv", path)).plan.warnings == told


def cut(path: Path, records: Sequence[bytes]) -> list[str]:
    size = len(records[0])
    header = bytes(8) + (33).to_bytes(2, "little") + size.to_bytes(2, "little")
    path.write_bytes(header.ljust(32, b"\0") + b"\r" + b"".join(records))
    return cut_texts(path, [DbfColumn("n", "N", 1, 1, 0), DbfColumn("c", "C", 2, size - 2, 0)], "a")


def test_deleted_records_do_not_count(tmp_path: Path) -> None:
    records = [b"*1 ab", b" 1abc", b"*1\0ab", b" 1 ab"]
    assert cut(tmp_path / "a.dbf", records) == [BLANKS.format("1, first in feature 2")]


def test_texts_are_counted_across_pieces_of_a_file(tmp_path: Path) -> None:
    records = [b" 1ab"] * CHUNK
    records[7] = b"*1 a"
    records[CHUNK // 2] = records[-1] = b" 1 a"
    assert cut(tmp_path / "a.dbf", records) == [BLANKS.format(f"2, first in feature {CHUNK // 2:,}")]
