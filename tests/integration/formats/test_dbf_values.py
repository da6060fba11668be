"""Values of a .dbf that are not of the types of their columns."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.formats import dbf_columns, dbf_values
from service.formats.dbf_columns import CHUNK, DbfColumn
from service.formats.dbf_values import odd_values
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_dbf_columns import shapefile

NO_NUMBERS = (
    "Values of 'c' in 'a' that are not numbers of the declared type ({}) were read as the number with which they "
    "begin, or 0. Declare the column as text (string) to keep them."
)
NO_DATES = (
    "Values of 'c' in 'a' that are not dates, although the column is declared as one ({}), became other dates or "
    "missing. Declare the column as "
    "text (string) to keep them."
)
TOO_LONG = (
    "Numbers of 'c' in 'a' that were too long when the file was written (2, first '**' in feature 2) are missing."
)
ROUNDED = (
    "Whole numbers of 'c' in 'a' (2, first 9007199254740993 in feature 1) lost digits, because the column has some "
    "beyond 64 bits."
)
CUT_IN_CSV = (
    "CSV is written with 15 digits of a decimal number; 2 values of 'c' that are longer whole numbers became others, "
    "such as 1234567890123460 for 1234567890123456. Store such numbers as integers or texts to keep them. The first is "
    "feature 1."
)
CELLS = {
    "numbers": ("N", ["12", "-3", "+4", "", " 5 ", "6."], ()),
    "texts": ("N", ["12", "abc", "1,5", "1.5", "3 4", "-"], (NO_NUMBERS.format("5, first 'abc' in feature 2"),)),
    "overflows": (
        "N",
        ["12", "**", "***"],
        (TOO_LONG,),
    ),
    "beyond 64 bits": (
        "N",
        ["9007199254740993", "9007199254740992", "7", "98765432109876543210987"],
        (ROUNDED, CUT_IN_CSV),
    ),
    "dates": ("D", ["20240229", "19991231", "00000000", ""], ()),
    "no dates": (
        "D",
        ["20240101", "20230229", "20230431", "20231301", "2023", "someday"],
        (NO_DATES.format("5, first '20230229' in feature 2"),),
    ),
}
"""The type of a column, its cells, and what is told of them."""


@pytest.mark.parametrize("name", CELLS)
async def test_values_that_are_not_of_the_type_of_their_column_are_counted(
    either: Pipeline, tmp_path: Path, name: str
) -> None:
    """The driver made others of them, or none, and told of the first at most."""
    kind, cells, told = CELLS[name]
    path = await shapefile(either, tmp_path, kind, [cell.encode() for cell in cells])
    assert (await either.to("Csv", path)).plan.warnings == told


def odd(path: Path, records: Sequence[bytes], decimals: int = 3) -> list[str]:
    size = len(records[0])
    header = bytes(8) + (33).to_bytes(2, "little") + size.to_bytes(2, "little")
    path.write_bytes(header.ljust(32, b"\0") + b"\r" + b"".join(records))
    return odd_values(path, [DbfColumn("c", "N", 1, size - 1, decimals)], "a")


def test_logical_values_that_are_neither_true_nor_false_are_told_where_they_are_read(tmp_path: Path) -> None:
    """The driver goes by the first letter, and takes a blank for false."""
    cells = b"T    ", b" true", b"n|  |", b"?    ", b"     ", b"x|y  "
    column = DbfColumn("c", "L", 1, 5, 0)
    path = tmp_path / "a.dbf"
    path.write_bytes((bytes(8) + struct.pack("<2H", 33, 6)).ljust(32, b"\0") + b"\r" + b" ".join([b"", *cells]))
    assert odd_values(path, [column], "a") == []
    (told,) = odd_values(path, [column], "a", reads_logical=True)
    assert told.startswith("Values of 'c' in 'a' that are neither true nor false (2, first '' in feature 5) were read")


def test_records_that_are_deleted_count_neither_as_features_nor_as_values(tmp_path: Path) -> None:
    records = [b"*abc", b" 1.5", b"*def", b" 1.6", b" ghi"]
    assert odd(tmp_path / "a.dbf", records) == [NO_NUMBERS.format("1, first 'ghi' in feature 3")]


def test_records_with_odd_marks_are_features(tmp_path: Path, few_cells: int) -> None:
    """The driver reads them; and those of a crafted file were passed one by one, without a bound."""
    assert odd(tmp_path / "a.dbf", [b"x1.5", b"*def", b"\nghi"]) == [NO_NUMBERS.format("1, first 'ghi' in feature 2")]
    (told,) = odd(tmp_path / "a.dbf", [b"x*"] * (few_cells + 10))
    assert f"(at least {few_cells:,}, " in told


def test_features_are_counted_across_pieces_of_a_file(tmp_path: Path) -> None:
    records = [b"%4d" % (number % 1000) for number in range(CHUNK)]
    records = [b" " + record[1:] for record in records]
    records[0], records[1], records[-1], records[CHUNK // 3] = b"*\n  ", b" \n 1", b" 1.x", b" 1|2"
    (told,) = odd(tmp_path / "a.dbf", records)
    assert "(3, first '? 1' in feature 1)" in told


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> int:
    """Few odd cells are looked at, in small pieces: half a million take about a second."""
    monkeypatch.setattr(dbf_columns, "CHUNK", 1 << 12)
    monkeypatch.setattr(dbf_values, "MOST_CELLS", 5_000)
    return dbf_values.MOST_CELLS


def test_only_so_many_odd_values_are_looked_at(tmp_path: Path, few_cells: int) -> None:
    """A file of a few megabytes may unpack to a hundred million of them."""
    (told,) = odd(tmp_path / "a.dbf", [b" *"] * (few_cells + 10))
    assert f"(at least {few_cells:,}, first '*' in feature 1)" in told


def test_integers_are_told_as_rounded_however_far_behind_them_one_is_beyond_64_bits(
    tmp_path: Path, few_cells: int
) -> None:
    """They are looked at one by one only if there is one."""
    records = [b"        9007199254740993"] * (few_cells + 10) + [b" 98765432109876543210987"]
    (told,) = odd(tmp_path / "a.dbf", records, decimals=0)
    assert told.startswith(f"Whole numbers of 'c' in 'a' (at least {few_cells:,}, first ")
