"""Shapefiles of other programs, whose .dbf has long integers, types of other programs, or a wrong encoding."""

import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_other_texts import shapefile_of

BEYOND_53 = 2**53 + 1
FOREIGN = (
    "Columns of types that shapefiles do not define, such as memos or binary numbers ('c'), have values in the result "
    "that mean nothing."
)
LIKE_UTF8 = "The texts of 'a' were read in the encoding that it declares, but look like UTF-8:"


async def shapefile(pipeline: Pipeline, path: Path, kind: str, cells: Sequence[bytes], *, language: int = 0) -> Path:
    """A zipped shapefile of as many points as `cells`, of the column `c` with this type and their width."""
    width = max(map(len, cells))
    features = [point(7, 50, n=1) for _ in cells]
    made = (await pipeline.to("Shapefile", write_geojson(path / "a.geojson", features))).path
    head = struct.pack("<4BIHH", 3, 124, 1, 1, len(cells), 65, width + 1).ljust(29, b"\0") + bytes([language, 0, 0])
    field = b"c".ljust(11, b"\0") + kind.encode() + bytes(4) + bytes([width, 0]) + bytes(14)
    records = b"".join(b" " + cell.ljust(width) for cell in cells)
    with zipfile.ZipFile(made) as former, zipfile.ZipFile(path / "a.zip", "w") as packed:
        for name in ("a.shp", "a.shx", "a.prj"):
            packed.writestr(name, former.read(name))
        packed.writestr("a.dbf", head + field + b"\r" + records + b"\x1a")
    return path / "a.zip"


@pytest.mark.parametrize("kind", ["N", "F"])
async def test_integers_of_more_than_18_digits_keep_all_of_them(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """The driver makes floating-point numbers of a column that is so wide, whatever it holds."""
    values = [BEYOND_53, -(2**63), 5]
    cells = [*(str(value).rjust(20).encode() for value in values), b""]
    done = await either.to("GeoJson", await shapefile(either, tmp_path, kind, cells))
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"c": value} for value in (*values, None)]
    assert done.output.warnings == ()


@pytest.mark.parametrize(
    ("kind", "cell"), [("M", b"         7"), ("I", b"\x2a\0\0\0"), ("B", bytes(7) + b"\x40")], ids="MIB"
)
async def test_values_of_types_that_only_other_programs_know_are_told(
    either: Pipeline, tmp_path: Path, kind: str, cell: bytes
) -> None:
    """The driver takes the number of a memo, or the bytes of a number, for a text."""
    path = await shapefile(either, tmp_path, kind, [b"", cell])
    (told,) = (await either.to("GeoJson", path)).output.warnings
    assert told.startswith(FOREIGN)


async def test_records_that_are_marked_as_deleted_are_told(either: Pipeline, tmp_path: Path) -> None:
    """They and their shapes were missing without a word; what is behind the records is none."""
    whole = await shapefile(either, tmp_path, "C", [b"a*", b"*b", b"c ", b"*d"])
    path = tmp_path / "deleted.zip"
    with zipfile.ZipFile(whole) as former, zipfile.ZipFile(path, "w") as packed:
        for name in former.namelist():
            content = former.read(name)
            if name.endswith(".dbf"):
                content = content.replace(b" a*", b"*a*").replace(b" c ", b"*c ").replace(b"\x1a", b"*e *f ")
            packed.writestr(f"deleted.{name[2:]}", content)
    done = await either.to("Csv", path)
    assert [row["c"] for row in readers.table(done.path)] == ["*b", "*d"]
    assert done.output.warnings == (
        "Records of 'deleted' that are marked as deleted (2) were left out, with their shapes.",
    )
    assert (await either.to("Csv", whole)).output.warnings == ()


async def test_nothing_is_told_of_memos_without_text(pipeline: Pipeline, tmp_path: Path) -> None:
    done = await pipeline.to("GeoJson", await shapefile(pipeline, tmp_path, "M", [b"", bytes(10)]))
    assert done.output.warnings == ()


@pytest.mark.parametrize("declared", ["ISO-8859-1", "1252", "ANSI 1251"])
async def test_texts_in_utf_8_that_a_cpg_declares_otherwise_are_told(
    pipeline: Pipeline, tmp_path: Path, declared: str
) -> None:
    done = await pipeline.to("GeoJson", await shapefile_of(pipeline, tmp_path, declared, "Müller", "utf-8"))
    assert [warning.startswith(LIKE_UTF8) for warning in done.output.warnings] == [True]


@pytest.mark.parametrize(("language", "is_told"), [(0x03, True), (0xC9, True), (0x57, False), (0, False)])
async def test_texts_in_utf_8_that_the_language_of_a_dbf_contradicts_are_told(
    pipeline: Pipeline, tmp_path: Path, language: int, *, is_told: bool
) -> None:
    """The languages 0 and 0x57 say nothing."""
    path = await shapefile(pipeline, tmp_path, "C", ["Müller".encode()], language=language)
    done = await pipeline.to("GeoJson", path)
    assert [warning.startswith(LIKE_UTF8) for warning in done.output.warnings] == [True] * is_told


@pytest.mark.parametrize(
    ("declared", "encoding"), [("1252", "cp1252"), ("ANSI 1251", "cp1251"), ("936", "gbk"), ("unknown", "utf-8")]
)
async def test_nothing_is_told_of_texts_in_the_encoding_that_a_cpg_declares(
    pipeline: Pipeline, tmp_path: Path, declared: str, encoding: str
) -> None:
    """Some Chinese texts in their usual encoding are UTF-8, too."""
    text = {"cp1252": "Müller", "cp1251": "Москва", "gbk": "联通", "utf-8": "Łódź"}[encoding]
    done = await pipeline.to("GeoJson", await shapefile_of(pipeline, tmp_path, declared, text, encoding))
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": text}]
    assert done.output.warnings == ()


async def test_tables_beside_a_shapefile_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """A .dbf alone is no upload, but holds data."""
    path = await shapefile(pipeline, tmp_path, "N", [b"7"])
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("codes/Kinds.DBF", packed.read("a.dbf"))
    done = await pipeline.to("GeoJson", path)
    told = "Tables without shapes were left out, because a .dbf alone is not read: 'codes/Kinds.DBF'."
    assert done.output.warnings == (told,)


async def test_texts_of_a_shapefile_that_declares_ascii_keep_all_letters(pipeline: Pipeline, tmp_path: Path) -> None:
    """The driver would leave out all others without a warning."""
    done = await pipeline.to("GeoJson", await shapefile_of(pipeline, tmp_path, "US-ASCII", "Müller", "utf-8"))
    assert [row["properties"] for row in readers.geojson(done.path)] == [{"n": "plain"}, {"n": "Müller"}]
