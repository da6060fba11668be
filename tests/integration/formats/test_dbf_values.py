"""Values of a .dbf that are not of the types of their columns."""

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.formats import dbf_values
from service.formats.dbf_cells import PIECE_BYTES
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


def test_records_with_odd_marks_are_features(tmp_path: Path) -> None:
    """The driver reads them; and those of a crafted file were passed one by one, without a bound."""
    assert odd(tmp_path / "a.dbf", [b"x1.5", b"*def", b"\nghi"]) == [NO_NUMBERS.format("1, first 'ghi' in feature 2")]


def test_features_are_counted_across_pieces_of_a_file(tmp_path: Path) -> None:
    records = [b"%4d" % (number % 1000) for number in range(CHUNK)]
    records = [b" " + record[1:] for record in records]
    records[0], records[1], records[-1], records[CHUNK // 3] = b"*\n  ", b" \n 1", b" 1.x", b" 1|2"
    (told,) = odd(tmp_path / "a.dbf", records)
    assert "(3, first '? 1' in feature 1)" in told


@pytest.mark.parametrize("cell", [b"1", b"x", b"*"])
def test_cells_of_one_content_are_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: bytes) -> None:
    """A crafted file of a megabyte took two seconds; one of a few megabytes may unpack to a hundred million cells."""
    asked: list[bytes] = []
    judge = dbf_values._judge

    def counted(column: DbfColumn, text: bytes) -> tuple[str, ...]:
        asked.append(text)
        return judge(column, text)

    monkeypatch.setattr(dbf_values, "_judge", counted)
    told = odd(tmp_path / "a.dbf", [b" " + cell] * CHUNK)
    assert [f"({CHUNK:,}, first" in sentence for sentence in told] == [True] * (cell != b"1")
    assert len(asked) <= 2 * CHUNK // PIECE_BYTES


LONG = b"9007199254740993"


@pytest.mark.parametrize(
    ("other", "is_beyond"),
    [
        (b" 9223372036854775807", False),
        (b"-9223372036854775808", False),
        (b" 9223372036854775808", True),
        (b"-9223372036854775809", True),
        (b"100000000000000000000", True),
        (b"9223372036854775808.5", True),
        (b"-9223372036854775808.", False),
    ],
)
@pytest.mark.parametrize("mark", [b" ", b"*"])
def test_integers_are_rounded_if_one_of_their_column_is_beyond_64_bits(
    tmp_path: Path, mark: bytes, other: bytes, *, is_beyond: bool
) -> None:
    """The driver also goes by numbers that a floating-point number has exactly, and by those of deleted records."""
    records = [b" " + LONG.rjust(21), mark + other.rjust(21)]
    told = odd(tmp_path / "a.dbf", records, decimals=0)
    rounded = [sentence for sentence in told if sentence.startswith("Whole numbers of 'c' in 'a'")]
    assert [f"first {LONG.decode()} in feature 1) lost digits" in sentence for sentence in rounded] == [
        True
    ] * is_beyond


def test_integers_are_told_as_rounded_however_far_behind_them_one_is_beyond_64_bits(tmp_path: Path) -> None:
    records = [b" " + LONG.rjust(23)] * 70_000 + [b" 98765432109876543210987"]
    (told,) = odd(tmp_path / "a.dbf", records, decimals=0)
    assert told.startswith(f"Whole numbers of 'c' in 'a' (70,001, first {LONG.decode()} in feature 1)")
