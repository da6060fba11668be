"""What reading GeoJSON must not lose for any target, in either way of conversion."""

import csv
import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from service.engine.output import Output
from service.formats.detect import detect
from service.formats.plan import plan_conversion
from service.formats.registry import find_output
from service.formats.request import ConversionRequest
from service.usecases.inspect_source import inspect_source
from tests.support.converters import Converters
from tests.support.geojson import collection, feature

Values = list[str | None]
LARGE = 300_000


async def convert(converters: Converters, document: bytes, output: str, name: str = "upload.geojson") -> Output:
    """Convert as a job does."""
    engine, folder = converters.engine, converters.new_directory()
    upload = folder / name
    upload.write_bytes(document)
    source, target = detect(upload, name, folder / "unpacked"), find_output(output)
    look = await inspect_source(engine, converters.run, source, target, folder)
    plan = plan_conversion(look.source, target, look.facts, ConversionRequest(), engine.catalogue)
    await engine.convert(converters.run, look.source, plan, folder)
    return await engine.collect(plan, folder)


def _of_csv(path: Path) -> Values:
    csv.field_size_limit(2 * LARGE)
    with path.open(encoding="utf-8", newline="") as file:
        return [row["a"] for row in csv.DictReader(file)]


def _of_database(path: Path) -> Values:
    with closing(sqlite3.connect(path)) as database:
        return [value for (value,) in database.execute("SELECT a FROM upload ORDER BY fid")]


def _of_lines(path: Path) -> Values:
    return [json.loads(line)["properties"]["a"] for line in path.read_text(encoding="utf-8").splitlines()]


READERS: Mapping[str, Callable[[Path], Values]] = {"Csv": _of_csv, "GeoPackage": _of_database, "GeoJsonSeq": _of_lines}
TEXTS = ["\ud83dé", "a\ude00b", "\udbff😀", "\ud83d", "😀", "é"]
TEXTS_READ = ["\ufffdé", "a\ufffdb", "\ufffd😀", "\ufffd", "😀", "é"]
HALVES_TOLD = "4 escapes of an unpaired surrogate"


@pytest.mark.parametrize("output", READERS)
@pytest.mark.parametrize("padding", [0, LARGE])
async def test_half_a_letter_takes_no_whole_one_along(converters: Converters, output: str, padding: int) -> None:
    """The converter would drop text after some of them; each becomes U+FFFD, and a warning counts them."""
    rows = [feature({"a": text}) for text in [*TEXTS, "x" * padding]]
    done = await convert(converters, collection(*rows), output)
    assert READERS[output](done.path)[: len(TEXTS)] == TEXTS_READ
    assert any(HALVES_TOLD in warning for warning in done.warnings)


async def test_half_letters_of_a_sequence_are_told(converters: Converters) -> None:
    """In a sequence, no text is dropped."""
    lines = b"".join(json.dumps(feature({"a": text})).encode() + b"\n" for text in TEXTS)
    done = await convert(converters, lines, "Csv", "upload.geojsonl")
    assert _of_csv(done.path) == TEXTS_READ
    assert any(HALVES_TOLD in warning for warning in done.warnings)


CODES = ["2024-01-01T10:00:00 or later", "1-2-3", "10:20 and more", "T1234", "23:593"]


@pytest.mark.parametrize("output", READERS)
@pytest.mark.parametrize("code", CODES)
async def test_a_text_that_begins_like_a_date_is_kept_whole(converters: Converters, output: str, code: str) -> None:
    """In a column of such texts, which the converter would take for dates or times."""
    done = await convert(converters, collection(feature({"a": code}), feature({"a": code})), output)
    assert READERS[output](done.path) == [code, code]
    told = any("stay text" in warning for warning in done.warnings)
    assert told is (output != "GeoJsonSeq")


async def test_dates_stay_dates_where_nothing_is_lost(converters: Converters) -> None:
    """A database has types for them, with millisecond precision; a warning reports the rounding."""
    moment = "2024-01-01T10:00:00.123456Z"
    done = await convert(converters, collection(feature({"a": "2024-01-01", "t": moment})), "GeoPackage")
    with closing(sqlite3.connect(done.path)) as database:
        types = {row[1]: row[2] for row in database.execute("PRAGMA table_info(upload)")}
        assert (types["a"], types["t"]) == ("DATE", "DATETIME")
    assert any("millisecond" in warning for warning in done.warnings)


async def test_between_json_formats_times_are_texts(converters: Converters) -> None:
    """They are kept character by character, so there is no warning."""
    moment = "2024-01-01T10:00:00.123456Z"
    done = await convert(converters, collection(feature({"a": moment})), "GeoJsonSeq")
    assert _of_lines(done.path) == [moment]
    assert done.warnings == ()


async def test_foreign_members_are_kept_or_told(converters: Converters) -> None:
    """Only other JSON formats have a place for them."""
    document = collection({**feature({"a": "x"}), "style": {"color": "red"}})
    kept = await convert(converters, document, "GeoJsonSeq")
    assert json.loads(kept.path.read_text())["style"] == {"color": "red"}
    assert kept.warnings == ()
    told = await convert(converters, document, "Kml")
    assert any("not kept: style." in warning for warning in told.warnings)


async def test_a_geometry_that_is_there_twice_is_told(converters: Converters) -> None:
    """One of them is read, as the scan reports."""
    done = await convert(converters, collection({**feature({"a": "x"}), "Geometry": None}), "Csv")
    assert any("more than once" in warning for warning in done.warnings)
