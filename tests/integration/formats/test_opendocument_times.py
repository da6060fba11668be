"""Times of ODS workbooks, which programs write in several notations."""

import json
import zipfile
from pathlib import Path

import pytest

from service.engine.jailed import opendocument
from service.formats.losses import UNPLACED
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

TIMES = {
    "PT10H30M00S": "10:30:00",
    "PT010H30M00S": "10:30:00",
    "PT5M": "00:05:00",
    "PT37800S": "10:30:00",
    "PT10H29M59.9999S": "10:30:00",
    "PT10H30M00.500000000S": "10:30:00.5",
    "PT25H00M00S": "25:00:00",
    "PT0100H00M07S": "100:00:07",
    "P1DT1H": "25:00:00",
    "09:55:33": "09:55:33",
    "9:55": "9:55",
    "P1Y": "P1Y",
    "-PT01H00M00S": "-01:00:00",
}
"""Times as LibreOffice, Gnumeric and others write them, and what they say; the driver knows the first notation."""
HEAD = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"><office:body><office:spreadsheet>'
    '<table:table table:name="a">'
)
TAIL = "</table:table></office:spreadsheet></office:body></office:document-content>"
SHAPES = {
    "plain": '<table:table-cell office:value-type="time" office:time-value="{}"><text:p>x</text:p></table:table-cell>',
    "turned": "<table:table-cell office:time-value = '{}' office:value-type = 'time'\n><text:p/></table:table-cell>",
    "empty": '<table:table-cell office:value-type="time" office:time-value="{}"/>',
}
"""How a cell may be written."""


DATE = '<table:table-cell office:value-type="date" office:date-value="{}"><text:p>x</text:p></table:table-cell>'
FRACTIONS = {
    "2024-01-02T03:04:05.5": ("2024-01-02T03:04:05.500", 0),
    "2024-01-02T03:04:05.123000000": ("2024-01-02T03:04:05.123", 0),
    "2024-01-02T03:04:05.122999999": ("2024-01-02T03:04:05.123", 0),
    "2024-01-02T03:04:05.1234567": ("2024-01-02T03:04:05.123", 1),
    "2024-01-02T03:04:05,25": ("2024-01-02T03:04:05.250", 0),
    "2024-01-02T03:04:05,2506": ("2024-01-02T03:04:05.251", 1),
}
"""Dates with fractions of seconds, and what becomes of them: LibreOffice writes nine digits, as it calculates them."""


def text_cell(text: str) -> str:
    return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'


def workbook(path: Path, *rows: list[str]) -> Path:
    """An ODS workbook with a sheet of `rows`, each of cells."""
    body = "".join(f"<table:table-row>{''.join(cells)}</table:table-row>" for cells in rows)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet", zipfile.ZIP_STORED)
        book.writestr("content.xml", f"{HEAD}{body}{TAIL}")
    return path


@pytest.mark.parametrize(
    "moment", ["-0044-03-15", "-0001-12-31T10:30:00", "10000-01-01", "12345-06-07T01:02:03", "15.03.2024", "2024"]
)
async def test_dates_that_the_driver_does_not_read_become_texts(either: Pipeline, tmp_path: Path, moment: str) -> None:
    """They became missing; LibreOffice counts the years before the year 0 with a minus."""
    rows = [[DATE.format(day), text_cell("a")] for day in (moment, "2020-01-02")]
    source = workbook(tmp_path / "a.ods", [text_cell("d"), text_cell("t")], *rows)
    done = await either.to("GeoJson", source)
    values = [row["properties"] for row in readers.geojson(done.path)]
    assert values == [{"d": moment, "t": "a"}, {"d": "2020-01-02", "t": "a"}]


@pytest.mark.parametrize("moment", FRACTIONS)
async def test_fractions_of_seconds_are_read_or_told(either: Pipeline, tmp_path: Path, moment: str) -> None:
    """Those after a comma were left out, and so were digits beyond milliseconds, without a word."""
    rows = [[DATE.format(day), text_cell("a")] for day in ("2024-01-02T03:04:05", moment)]
    done = await either.to("GeoJson", workbook(tmp_path / "a.ods", [text_cell("d"), text_cell("t")], *rows))
    expected, told = FRACTIONS[moment]
    assert [row["properties"] for row in readers.geojson(done.path)][1] == {"d": expected, "t": "a"}
    finer = "Times with more digits than those of milliseconds (1) were rounded. The first is in row 3 of its sheet."
    assert done.output.warnings == ((finer, UNPLACED) if told else (UNPLACED,))


@pytest.mark.parametrize("shape", SHAPES)
async def test_times_in_all_notations_are_kept(either: Pipeline, tmp_path: Path, shape: str) -> None:
    """They became missing, lost fractions of seconds, or became other times, without a warning."""
    names = [f"c{number}" for number in range(len(TIMES))]
    cells = [SHAPES[shape].format(time) for time in TIMES]
    source = workbook(tmp_path / "a.ods", [text_cell(name) for name in names], cells)
    done = await either.to("GeoJson", source)
    (feature,) = readers.geojson(done.path)
    assert json.loads(json.dumps(feature["properties"])) == dict(zip(names, TIMES.values(), strict=True))
    assert done.output.warnings == (UNPLACED,)


async def test_times_beside_texts_and_longer_ones_are_in_one_notation(pipeline: Pipeline, tmp_path: Path) -> None:
    """Beside a text, the driver left PT01H02M03S as it is."""
    values = [SHAPES["plain"].format("PT01H02M03S"), text_cell("late"), SHAPES["plain"].format("PT100H00M00S")]
    rows = [[text_cell(str(number)), value] for number, value in enumerate(values)]
    source = workbook(tmp_path / "a.ods", [text_cell("n"), text_cell("t")], *rows)
    done = await pipeline.to("Csv", source)
    assert [row["t"] for row in readers.table(done.path)] == ["01:02:03", "late", "100:00:00"]


async def test_times_stay_in_their_rows(pipeline: Pipeline, tmp_path: Path) -> None:
    """In a sheet of several pieces, of which the run holds one at a time."""
    shape, count = SHAPES["plain"], 12_000
    rows = [[text_cell(f"row {number}"), shape.format(f"PT0{number // 3600}H00M00S")] for number in range(count)]
    source = workbook(tmp_path / "a.ods", [text_cell("n"), text_cell("t")], *rows)
    done = await pipeline.to("Csv", source)
    found = readers.table(done.path)
    assert [(row["n"], row["t"]) for row in found] == [
        (f"row {number}", f"{number // 3600:02}:00:00") for number in range(count)
    ]


def test_many_times_of_one_cell_are_looked_at_once(tmp_path: Path) -> None:
    """The search began anew at each of them, which took as long as a job may for a file of some kilobytes."""
    torn = "<table:table-cell " + 'office:time-value="x" ' * 50_000 + ">"
    source = workbook(tmp_path / "a.ods", *([SHAPES["plain"].format("PT01H00M00S"), torn] for _ in range(20)))
    opendocument.main(str(source), str(tmp_path / "plain.ods"))
    with zipfile.ZipFile(tmp_path / "plain.ods") as book:
        content = book.read(opendocument.MEMBER).decode()
    assert (content.count("<text:p>01:00:00</text:p>"), content.count(torn)) == (20, 20)


async def test_numbers_that_are_none_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """They become missing, as those of other formats do."""
    cells = [f'<table:table-cell office:value-type="float" office:value="{value}"/>' for value in ("1.5", "NaN")]
    rows = [[text_cell("n"), text_cell("t")], *([cell, text_cell("a")] for cell in cells)]
    done = await pipeline.to("Csv", workbook(tmp_path / "a.ods", *rows))
    assert done.path.read_text(encoding="utf-8") == "n,t\n1.5,a\n,a\n"
    assert done.output.warnings == ("ODS holds numbers that are NaN; 1 value of 'n' became missing.",)


NO_NUMBERS = {
    'office:value=""': ("none", None),
    "office:value=''": ("", None),
    'office:value="abc"': ("abc", "abc"),
    'office:value="1,5"': ("", "1,5"),
    'office:value="12 km"': ("12 km", "12 km"),
    'office:value="" table:formula="of:=1/0"': ("none", None),
}
"""Values that are no numbers, the text of their cell, and what becomes of them without this text."""


@pytest.mark.parametrize("value", NO_NUMBERS)
async def test_values_that_are_no_numbers_do_not_become_zeros(either: Pipeline, tmp_path: Path, value: str) -> None:
    """They are texts of what the cell shows, or missing."""
    shown, bare = NO_NUMBERS[value]
    cell = f'<table:table-cell office:value-type="float" {value}>'
    cells = [f"{cell}<text:p>{shown}</text:p></table:table-cell>", f"{cell[:-1]}/>"]
    number = '<table:table-cell office:value-type="float" office:value="7.5"/>'
    rows = [[text_cell("n"), text_cell("t")], *([one, text_cell("a")] for one in (number, *cells))]
    done = await either.to("GeoJson", workbook(tmp_path / "a.ods", *rows))
    found = [row["properties"] for row in readers.geojson(done.path)]
    first: object = "7.5" if shown or bare else 7.5
    expected = (first, shown or bare, bare)
    assert found == [{"n": number, "t": "a"} for number in expected]


def test_many_values_of_one_cell_are_looked_at_once(tmp_path: Path) -> None:
    """As of times."""
    torn = "<table:table-cell " + 'office:value="x" ' * 50_000 + ">"
    odd = '<table:table-cell office:value-type="float" office:value="x"/>'
    source = workbook(tmp_path / "a.ods", *([odd, torn] for _ in range(20)))
    opendocument.main(str(source), str(tmp_path / "plain.ods"))
    with zipfile.ZipFile(tmp_path / "plain.ods") as book:
        content = book.read(opendocument.MEMBER).decode()
    assert (content.count("<text:p>x</text:p>"), content.count(torn)) == (20, 20)
