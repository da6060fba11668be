"""Rows and values of a .mid that its driver leaves out or makes up."""

import csv
import io
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from service.errors import Rejection
from service.formats.format import reading_of
from service.formats.mid_values import LONGEST_LINE, mid_warnings
from service.formats.table.databases import RULES_LEFT_OUT
from service.formats.table.drawings import MAPINFO
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Converted, Pipeline
from tests.support.calls import counted_calls
from tests.support.converters import Converters

COLUMNS = {"i": "Integer", "t": "Char(9)", "d": "Date", "m": "DateTime", "f": "Decimal(6, 2)"}
ROW = '1,"a, b",20240229,20240102030405678,2.5'
POINT = "POINT 7 50\n    Symbol (35,0,12)\n"
OBJECTS = (
    "NONE\nLine 1 1 2 2\n    Pen (1,2,0)\nPline Multiple 2\n2\n1 1\n2 2\n2\n3 3\n4 4\nRegion 1\n4\n0 0\n0 4\n4 4\n0 0\n"
    'Rect 0 0 2 2\nText\n"point"\n0 0 1 1\n    Font ("Arial",0,0,0)\nMultipoint 2\n1 1\n2 2\n'
    "Collection 2\nRegion 1\n4\n0 0\n0 4\n4 4\n0 0\nMultipoint 1\n5 5\nRect 0 0 2 2"
)
"""Nine objects, of which one has two parts that look like objects."""
ZEROS = "Empty numbers in 'a' (2 values of 'i', 'f') became 0, because MapInfo knows no missing numbers. "
DATES = "2 values of 'd' in 'a' became missing or others, because only 8 digits, with nothing between or around them, "
MOMENTS = (
    "1 value of 'm' in 'a' became missing or others, because only 17 digits, with nothing between or around them, "
)
MORE = "1 row of 'a' had more values than there are columns; what is beyond them was left out. "
TYPE_AT, HEAD = 32 + 11, 32 + 32 + 1
"""Where the type of the first column of a .dat is, and how many bytes are before its rows if it is the only one."""
TOLD = {
    (ROW, ",a,,,", "0,a,,,0", ROW): [ZEROS + "The first is feature 2."],
    (ROW, "1,a,2024-02-29,20240102030405,2", '1,a,"01/02/24",,2'): [
        DATES + "are read as a date. The first is feature 2.",
        MOMENTS + "are read as a datetime. The first is feature 2.",
    ],
    (f"{ROW},more", ROW): [MORE + "The first is feature 1."],
    (ROW, '1,"a\n""b""",,,2'): [],
}
"""By the rows of a .mid: what is told of them."""


def mapinfo(path: Path, objects: str, rows: str, columns: dict[str, str] = COLUMNS, unique: str = "") -> Path:
    head = f'Version 300\nCharset "Neutral"\nDelimiter ","\n{unique}CoordSys Earth Projection 1, 104\n'
    listed = "".join(f"  {name} {kind}\n" for name, kind in columns.items())
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.mif", f"{head}Columns {len(columns)}\n{listed}Data\n\n{objects}".replace("\n", "\r\n"))
        packed.writestr("a.mid", rows)
    return path


@pytest.mark.parametrize("rows", TOLD)
async def test_values_that_are_not_read_as_they_are_are_told(
    either: Pipeline, tmp_path: Path, rows: tuple[str, ...]
) -> None:
    """Empty numbers became 0, and dates in other notations missing, without a word."""
    text = "".join(f"{row}\n" for row in rows)
    count = len(rows_of(text))
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", POINT * count, text))
    assert len(readers.geojson(done.path)) == count
    assert [warning for warning in done.output.warnings if "calendar" not in warning] == TOLD[rows]


@pytest.mark.parametrize("column", ["i", "Line"])
@pytest.mark.parametrize("surplus", [0, 1, 1000])
async def test_rows_without_an_object_are_told(either: Pipeline, tmp_path: Path, surplus: int, column: str) -> None:
    """They were left out; a column whose name is that of a kind of object counted as one."""
    rows = "".join(f"{number}\n" for number in range(9 + surplus))
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", OBJECTS, rows, {column: "Integer"}))
    assert len(readers.geojson(done.path)) == 9
    told = [warning for warning in done.output.warnings if ".mid" in warning]
    noun = "row" if surplus == 1 else "rows"
    sentence = f"The .mif of 'a' has only 9 objects; what is beyond them in its .mid was left out: {surplus:,} {noun}."
    assert told == ([sentence] if surplus else [])


@pytest.mark.parametrize("rows", ["", "1\n2\n", "1,a\n\n3,c\n"])
async def test_objects_without_a_row_are_the_reason_of_the_refusal(either: Pipeline, tmp_path: Path, rows: str) -> None:
    """The driver reads no more of the file, which was called damaged."""
    columns = {"i": "Integer", "t": "Char(9)"} if "," in rows else {"i": "Integer"}
    path = mapinfo(tmp_path / "a.zip", POINT * 3, rows, columns)
    with pytest.raises(Rejection, match=r"A \.mid has fewer rows than its \.mif has objects"):
        await either.to("GeoJson", path)


async def test_an_empty_row_of_one_column_is_an_empty_number(either: Pipeline, tmp_path: Path) -> None:
    """It became 0 without a word, as nothing behind it was looked at."""
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", POINT * 3, "1\n\n3\n", {"i": "Integer"}))
    assert [feature["properties"] for feature in readers.geojson(done.path)] == [{"i": 1}, {"i": 0}, {"i": 3}]
    told = "Empty numbers in 'a' (1 value of 'i') became 0, because MapInfo knows no missing numbers. "
    assert done.output.warnings == (told + "The first is feature 2.",)


async def test_whole_numbers_that_lose_digits_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Of 18 digits, the driver keeps 15 to 17; others are exact all the same."""
    rows = "999999999999999999,1\n1000000000000000000,12345678901234567\n123456789012345678.0,0.1234567890123456789\n"
    path = mapinfo(tmp_path / "a.zip", POINT * 3, rows, {"d": "Decimal(20,0)", "f": "Float"})
    done = await either.to("GeoPackage", path)
    ((_, read),) = readers.geopackage(done.path).items()
    assert [row["d"] for row in read] == [1e18, 1e18, 123456789012345680.0]
    (told,) = [warning for warning in done.output.warnings if "last digits" in warning]
    assert told.startswith(
        "Whole numbers in 'a' (3 values of 'd', 'f') lost their last digits, because numbers of the "
    )
    assert told.endswith("The first is feature 1.")


async def test_unique_columns_are_told_as_rules(pipeline: Pipeline, tmp_path: Path) -> None:
    """The header of a .mif lists them by their numbers."""
    path = mapinfo(tmp_path / "a.zip", POINT, '1,"a"\n', {"i": "Integer", "t": "Char(9)"}, "Unique 1, 2\n")
    assert (await pipeline.to("Csv", path)).output.warnings == (RULES_LEFT_OUT.format(count=2),)


def truths_of(done: Converted) -> list[object]:
    """The values of `ok` in GeoJSON."""
    found: list[Any] = readers.geojson(done.path)
    return [feature["properties"]["ok"] for feature in found]


LOGICAL = {"ok": "Logical", "t": "Char(9)"}


async def test_logical_columns_are_boolean(either: Pipeline, tmp_path: Path) -> None:
    """Some drivers report them as texts."""
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", POINT * 3, 'T,"a"\nF,"T"\nF,"F"\n', LOGICAL))
    assert truths_of(done) == [True, False, False]


async def test_logical_values_that_say_nothing_are_missing_or_told(either: Pipeline, tmp_path: Path) -> None:
    """Where the driver reads logical columns, it takes them for false."""
    done = await either.to("GeoJson", mapinfo(tmp_path / "a.zip", POINT * 2, 'T,"a"\n,"T"\n', LOGICAL))
    is_read = either.engine.capabilities.is_of(reading_of(MAPINFO).reads_logical)
    assert truths_of(done) == [True, False if is_read else None]
    told = (
        "1 value of 'ok' in 'a' are neither true nor false, such as T and F, and became false. The first is feature 2."
    )
    assert done.output.warnings == (told,) * is_read


def test_logical_values_may_be_words(tmp_path: Path) -> None:
    """Such as true and No, of which the driver reads the first letter."""
    path = mapinfo(tmp_path / "a.zip", POINT * 4, "TRUE\nyes\nNo\nfalse\n", {"ok": "Logical"})
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path)
    assert mid_warnings(tmp_path / "a.mif", tmp_path / "a.mid", "a", reads_logical=True) == []


async def test_logical_columns_of_a_tab_are_boolean(either: Pipeline, converters: Converters, tmp_path: Path) -> None:
    """Its records hold a byte that is 0 or 1 for each."""
    directory = converters.new_directory()
    with zipfile.ZipFile(mapinfo(tmp_path / "a.zip", POINT * 2, "T\nF\n", {"ok": "Char(1)"})) as packed:
        packed.extractall(directory)
    assert await converters.ogr2ogr(directory, "-f", "MapInfo File", "b.tab", "a.mif")
    dat, tab = directory / "b.dat", directory / "b.tab"
    table = dat.read_bytes()
    rows = table[HEAD:].replace(b"T", b"\1").replace(b"F", b"\0")
    dat.write_bytes(table[:TYPE_AT] + b"L" + table[TYPE_AT + 1 : HEAD] + rows)
    tab.write_text(tab.read_text().replace("Char (1)", "Logical"))
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        for file in directory.glob("b.*"):
            packed.write(file, file.name)
    done = await either.to("GeoJson", tmp_path / "b.zip")
    assert truths_of(done) == [True, False]


def test_a_row_without_end_takes_a_bounded_amount_of_memory(tmp_path: Path) -> None:
    """Its texts went on over line ends, and the list of them took fourteen times the memory of the file."""
    mif, mid = tmp_path / "a.mif", tmp_path / "a.mid"
    mif.write_text('Delimiter ","\nColumns 1\n  t Char(9)\nData\n\nPoint 7 50\n')
    mid.write_text('"a\n",' * (LONGEST_LINE * 4 // 5))
    tracemalloc.start()
    try:
        mid_warnings(mif, mid, "a")
        assert tracemalloc.get_traced_memory()[1] < 30 * LONGEST_LINE
    finally:
        tracemalloc.stop()


def test_odd_values_are_counted_together(tmp_path: Path) -> None:
    """One by one, those of a crafted ZIP of some kilobytes took seconds of the service's own process."""
    mif, mid = tmp_path / "a.mif", tmp_path / "a.mid"
    columns = "".join(f"  c{number} Logical\n" for number in range(100))
    mif.write_text(f'Delimiter ","\nColumns 100\n{columns}Data\n\n' + "none\n" * 100)
    mid.write_text(f"{',' * 99}\n" * 100)
    with counted_calls() as calls:
        (told,) = mid_warnings(mif, mid, "a", reads_logical=True)
    assert told.startswith("10,000 values")
    assert calls.python.total() < 2_000
    assert calls.python["Counter.__init__"] == 1


def test_the_first_of_odd_values_is_told_whichever_column_has_it(tmp_path: Path) -> None:
    """Values are looked at column by column, some thousand rows at a time."""
    mif, mid = tmp_path / "a.mif", tmp_path / "a.mid"
    mif.write_text('Delimiter ","\nColumns 2\n a Date\n b Date\nData\n' + "none\n" * 60_000)
    mid.write_text("20240229,\n" * 50_000 + ",20240229\n,today\nnow,\n" + "now,\n" * 9_000)
    (told,) = mid_warnings(mif, mid, "a")
    assert told.startswith("9,002 values")
    assert told.endswith("The first is feature 50,002.")


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(("affine", "count"), [(' Affine Units "m", 1, 0, 100, 0, 1, 200', 1), ("", 0)])
async def test_a_transformation_that_is_not_applied_is_told(
    either: Pipeline, tmp_path: Path, affine: str, count: int
) -> None:
    """The driver reads the coordinates as they are written."""
    system = f'CoordSys Earth Projection 8, 104, "m", 9, 0, 0.9996, 500000, 0{affine}'
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("a.mif", f'Version 300\nDelimiter ","\n{system}\nColumns 1\n  i Integer\nData\n\n{POINT}')
        packed.writestr("a.mid", "1\n")
    done = await either.to("GeoJson", tmp_path / "a.zip")
    assert sum("affine transformation" in warning for warning in done.output.warnings) == count


async def test_arcs_and_ellipses_that_become_lines_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """Also without a .mid."""
    curves = "Ellipse 1 2 3 4\nARC 1 2 3 4\n  0 90\nRoundRect 1 2 3 4 0.5\n"
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        head = 'Version 300\nDelimiter ","\nCoordSys Earth Projection 1, 104\nColumns 1\n  i Integer\nData\n\n'
        packed.writestr("a.mif", head + curves + POINT)
    done = await pipeline.to("GeoJson", tmp_path / "a.zip")
    assert "Arcs, ellipses and rounded rectangles (3) became lines and areas of short segments." in done.output.warnings
