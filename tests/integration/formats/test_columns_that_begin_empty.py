"""Columns of workbooks whose first cell is empty, so that the driver of ODS takes them for texts."""

from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.integration.formats.test_opendocument_times import DATE, text_cell, workbook

VALUES: dict[str, object] = {
    "zeros": "007",
    "exponent": "1e5",
    "decimal": "1.50",
    "whole": "12",
    "day": "2020-01-02x",
    "number": 1.5,
    "count": 12345678901,
    "truth": True,
    "falsehood": False,
    "date": "2020-01-02",
    "time": "2020-01-02T03:04:05",
}
"""What a column holds behind the empty cell."""
EMPTY = "<table:table-cell/>"
NUMBER = '<table:table-cell office:value-type="{}" office:value="{}"/>'
TRUE = (
    '<table:table-cell office:value-type="boolean" office:boolean-value="true"><text:p>JA</text:p></table:table-cell>'
)
OURS = '<table:table-cell table:formula="of:=TRUE()" office:value-type="float" office:value="1"/>'
NO_TEXT = '<table:table-cell office:value-type="string"><text:p/></table:table-cell>'
CELLS: dict[str, tuple[list[str], list[object]]] = {
    "texts": ([text_cell("12"), text_cell("1.50")], ["12", "1.50"]),
    "a text among numbers": ([NUMBER.format("float", "2.50"), text_cell("7")], ["2.50", "7"]),
    "numbers": ([NUMBER.format("float", "2"), NUMBER.format("currency", "7.5")], [2.0, 7.5]),
    "whole numbers": ([NUMBER.format("float", "2"), NUMBER.format("percentage", "7")], [2, 7]),
    "of 64 bits": ([NUMBER.format("float", "9223372036854775807"), NUMBER.format("float", "-5")], [2**63 - 1, -5]),
    "numbers and an empty text": ([NO_TEXT, NUMBER.format("float", "2")], [None, 2]),
    "true": ([TRUE, OURS], [True, True]),
    "true beside numbers": ([TRUE, NUMBER.format("float", "7")], [1, 7]),
    "dates": ([DATE.format("2020-01-02"), EMPTY], ["2020-01-02", None]),
    "a date and a text": ([DATE.format("2020-01-02"), text_cell("2020-01-03")], ["2020-01-02", "2020-01-03"]),
    "texts that look like dates": ([text_cell("2020-01-02"), text_cell("2020-01-03")], ["2020-01-02", "2020-01-03"]),
}
"""Cells below the empty one, and what they become."""
TYPES = {str: "text", int: "integer", float: "real", bool: "boolean"}
NEXT_SHEET = '</table:table-row></table:table><table:table table:name="b"><table:table-row>'


@pytest.mark.parametrize("output", ["Ods", "Xlsx"])
async def test_values_of_our_workbooks_keep_their_types(either: Pipeline, tmp_path: Path, output: str) -> None:
    """Texts that look like numbers became numbers, and in ODS true and false became 1 and 0."""
    source = write_geojson(tmp_path / "a.geojson", [point(1, 2, **dict.fromkeys(VALUES), n="a"), point(1, 2, **VALUES)])
    made = await either.to(output, source)
    done = await either.to("GeoJson", made.path, source_epsg=4326)
    first, second = [found["properties"] for found in readers.geojson(done.path)]
    assert first == {**dict.fromkeys(VALUES), "n": "a"}
    assert second == {**VALUES, "n": None}
    assert done.output.warnings == ()


@pytest.mark.parametrize("case", CELLS)
async def test_cells_decide_what_a_column_holds(either: Pipeline, tmp_path: Path, case: str) -> None:
    """Not what their texts look like."""
    cells, expected = CELLS[case]
    rows = [[text_cell("a"), EMPTY], *([text_cell("a"), cell] for cell in cells)]
    source = workbook(tmp_path / "a.ods", [NEXT_SHEET, text_cell("n"), text_cell("c")], *rows)
    done = await either.to("GeoJson", source)
    values = [found["properties"] for found in readers.geojson(done.path)]
    assert values == [{"n": "a", "c": value} for value in (None, *expected)]
    [kind] = [field.type for field in done.facts.layers[0].fields if field.name == "c"]
    assert kind == ("date" if case == "dates" else TYPES[type(expected[-1])])
    told = "True and false in columns that also hold other values (1) became 1 and 0." in done.output.warnings
    assert told is (case == "true beside numbers")


async def test_cells_behind_merged_ones_stay_in_their_columns(either: Pipeline, tmp_path: Path) -> None:
    """The driver takes several covered cells in one element for one: the values behind them moved to the left."""
    merged = '<table:table-cell table:number-columns-spanned="3" office:value-type="float" office:value="1"/>'
    covered = '<table:covered-table-cell table:style-name="ce1" table:number-columns-repeated="2"'
    rows = [
        [merged, f"{covered}/>", text_cell("d"), EMPTY],
        [merged, f"{covered}><text:p>hidden</text:p></table:covered-table-cell>", text_cell("d"), text_cell("e")],
    ]
    source = workbook(tmp_path / "a.ods", [text_cell(name) for name in "abcde"], *rows)
    done = await either.to("Csv", source)
    assert [list(row.values()) for row in readers.table(done.path)] == [
        ["1", "", "", "d", ""],
        ["1", "", "", "d", "e"],
    ]
