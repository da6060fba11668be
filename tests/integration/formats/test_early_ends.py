"""Files of which drivers would read the beginning alone, and say nothing."""

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import SAMPLES

LONG = "x" * 200_000
"""More than drivers read in one piece of XML."""
MEMBERS = {"Ods": "content.xml", "Xlsx": "xl/worksheets/sheet1.xml", "Gpx": ""}
ROWS = {"Ods": "<table:table-row", "Xlsx": "<row ", "Gpx": "<wpt "}
GAP = '<table:table-row table:number-rows-repeated="{}"><table:table-cell/></table:table-row>'


async def changed(pipeline: Pipeline, directory: Path, target: str, change: Callable[[str], str]) -> Path:
    """A file that we wrote, in which the text before its last row was changed."""
    source = write_geojson(directory / "a.geojson", SAMPLES["points"])
    whole = (await pipeline.to(target, source)).path
    path = directory / f"changed{whole.suffix}"
    row, member = ROWS[target], MEMBERS[target]
    if not member:
        path.write_text(_changed(whole.read_text(encoding="utf-8"), row, change), encoding="utf-8")
        return path
    with zipfile.ZipFile(whole) as book, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in book.namelist():
            text = book.read(name)
            copy.writestr(name, _changed(text.decode(), row, change) if name == member else text)
    return path


def _changed(text: str, row: str, change: Callable[[str], str]) -> str:
    before, found, after = text.rpartition(row)
    return before + change(found) + after


@pytest.mark.parametrize("target", MEMBERS)
@pytest.mark.parametrize(
    "change",
    [lambda row: f"<!--{LONG}-->{row}", lambda row: f"{row.rstrip()} note='{LONG}' "],
    ids=["comment", "attribute"],
)
async def test_markup_that_is_too_long_for_a_driver_is_refused(
    either: Pipeline, tmp_path: Path, target: str, change: Callable[[str], str]
) -> None:
    """Drivers stop there, with a message but no failure, and what follows would be lost."""
    path = await changed(either, tmp_path, target, change)
    with pytest.raises(Rejection, match="too long to be read"):
        await either.to("Csv", path)


@pytest.mark.parametrize("times", ["10001", "1048000", "0", "-1", "many"])
async def test_rows_after_a_large_gap_are_not_lost(either: Pipeline, tmp_path: Path, times: str) -> None:
    """The driver of ODS stops at rows that repeat more than 10,000 times, or how often it cannot tell."""
    path = await changed(either, tmp_path, "Ods", lambda row: GAP.format(times) + row)
    with pytest.raises(Rejection, match="where its reader stops"):
        await either.to("Csv", path)


@pytest.mark.parametrize(("number", "is_told"), [(9_000, False), (12_000, True)])
async def test_empty_rows_that_the_driver_of_xlsx_leaves_out_are_told(
    either: Pipeline, tmp_path: Path, number: int, *, is_told: bool
) -> None:
    """It keeps the rows behind a gap of more than 10,000, and makes features of the empty ones of a shorter gap."""
    whole = await either.to("Xlsx", write_geojson(tmp_path / "a.geojson", SAMPLES["points"]))
    assert len(SAMPLES["points"]) == 2, "the row that is moved is the third one, with the header"
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(whole.path) as book, zipfile.ZipFile(path, "w") as copy:
        for name in book.namelist():
            copy.writestr(name, re.sub(rb'(?<= r=")([A-Z]*+)3(?=")', rb"\g<1>%d" % number, book.read(name)))
    done = await either.to("GeoJson", path, source_epsg=4326)
    found = [feature["properties"] for feature in readers.geojson(done.path)]
    assert len(found) == (2 if is_told else number - 1)
    assert found[-1] == SAMPLES["points"][-1]["properties"]
    told = [warning for warning in done.output.warnings if "before row 12,000 of a sheet" in warning]
    assert ["Rows with values were kept" in warning for warning in told] == [True] * is_told


async def test_numbers_without_texts_after_a_large_gap_are_not_lost(either: Pipeline, tmp_path: Path) -> None:
    """Some programs write the value of a cell alone, without the text that shows it."""
    cell = '<table:table-cell office:value-type="float" office:value="5"/>'
    rows = f"{GAP.format(20_000)}<table:table-row>{cell}</table:table-row>"
    path = await changed(either, tmp_path, "Ods", lambda row: f'{rows}</table:table><table:table table:name="b">{row}')
    with pytest.raises(Rejection, match="where its reader stops"):
        await either.to("GeoPackage", path)


async def test_rows_that_repeat_at_the_end_of_a_sheet_are_no_fault(either: Pipeline, tmp_path: Path) -> None:
    """Office programs end most sheets with them; and it may be many pieces until the end."""
    blank = "<table:table-row><table:table-cell/></table:table-row>" * 50_000
    path = await changed(either, tmp_path, "Ods", lambda row: row)
    end = "</table:table>"
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name).decode() for name in book.namelist()}
    parts["content.xml"] = parts["content.xml"].replace(end, f"{GAP.format(1_048_000)}{blank}{end}", 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    done = await either.to("Csv", path, keep_coordinates=True)
    assert done.facts.layers[0].features == len(SAMPLES["points"])
