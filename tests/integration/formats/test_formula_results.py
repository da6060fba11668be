"""Workbooks whose cells hold texts and errors as the results of formulas, which some programs write for all texts."""

from pathlib import Path

import pytest

from service.formats.losses import UNPLACED
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_iso_dates import write
from tests.integration.formats.test_opendocument_times import text_cell, workbook

HEADER = """<row><c t="str"><v>code</v></c><c t="str"><v>at</v></c><c t="str"><v>n</v></c></row>"""
DATES = f"""{HEADER}
<row r="2"><c r="A2" t="s"><v>0</v></c><c r="B2" s="2"><v>45293</v></c><c r="C2"><v>1.5</v></c></row>
<row r="3"><c r="A3" t="str"><v>b</v></c><c r="B3" s="2" t="str"><f>A3</f><v>later</v></c><c r="C3"><v>2</v></c></row>
<row r="4"><c r="A4" t="str"><f>A1</f><v></v></c><c r="B4" s="2" t="e"><f>A4</f><v>#N/A</v></c>
<c r="C4" t="e"><v>#DIV/0!</v></c></row>"""
CODES = f"""{HEADER}
<row r="2"><c r="A2" t="str"><v>00501</v></c><c r="B2" s="2"><v>45293</v></c><c r="C2"><v>1.5</v></c></row>
<row r="3"><c r="A3" t="str"><v> 1e5</v></c><c r="B3" s="2"/><c r="C3"><v>2</v></c></row>
<row r="4"><c r="A4" t="str"><v>-</v></c></row>"""
HIDDEN = f"""{HEADER}
<row r="2"><c r="A2" t="str"><v><![CDATA[00501]]></v></c></row>
<row r="3"><c r="A3" t="str"><f><![CDATA[A2<"1"]]></f><v>00502</v></c></row>"""
DECOYS = f"""{HEADER}
<row r="2"><c r="A2" xml:t="n" t="str"><v>00501</v></c></row>
<row r="3"><c r="A3" x=" t=" t = 'str' ><v>00502</v></c></row>"""
ERRORS = (
    "Cells that hold errors of formulas (2) are texts such as #N/A, even in columns of numbers and dates. The first is "
    "in row 4 of its sheet."
)
CASES = {
    "in a column of dates": (
        DATES,
        [
            {"code": "n", "at": "2024/01/02", "n": "1.5"},
            {"code": "b", "at": "later", "n": "2"},
            {"code": None, "at": "#N/A", "n": "#DIV/0!"},
        ],
        [ERRORS],
    ),
    "that look like numbers": (
        CODES,
        [
            {"code": "00501", "at": "2024-01-02", "n": 1.5},
            {"code": " 1e5", "at": None, "n": 2.0},
            {"code": "-", "at": None, "n": None},
        ],
        [],
    ),
    "beside CDATA": (
        HIDDEN,
        [{"code": "00501", "at": None, "n": None}, {"code": "00502", "at": None, "n": None}],
        [],
    ),
    "beside other attributes": (
        DECOYS,
        [{"code": "00501", "at": None, "n": None}, {"code": "00502", "at": None, "n": None}],
        [],
    ),
}
"""Rows, what they are, and what is told of them."""


@pytest.mark.parametrize("case", CASES)
async def test_results_of_formulas_are_texts(either: Pipeline, tmp_path: Path, case: str) -> None:
    """Their driver would take them for numbers of days, or for numbers without the zeros in front."""
    rows, expected, told = CASES[case]
    done = await either.to("GeoJson", write(tmp_path / "a.xlsx", rows=rows))
    assert [found["properties"] for found in readers.geojson(done.path)] == expected
    assert [warning for warning in done.output.warnings if "formulas" in warning] == told


FORMULA = "table:formula=\"of:=TRIM('a';[.B1])\""
RESULTS = {
    f'<table:table-cell {FORMULA} office:value-type="string" office:string-value=""><text:p/></table:table-cell>': None,
    f"<table:table-cell office:value-type='string' {FORMULA} />": None,
    f"<table:table-cell {FORMULA}><text:p/></table:table-cell>": None,
    f'<table:table-cell {FORMULA} office:value-type="string"><text:p></text:p></table:table-cell>': None,
    f'<table:table-cell {FORMULA} office:value-type="string"><text:p>b</text:p></table:table-cell>': "b",
    f'<table:table-cell {FORMULA} office:value-type="float" office:value="7"/>': "7",
}
"""Cells of ODS workbooks with formulas, as LibreOffice and others write them, and their results."""


@pytest.mark.parametrize("cell", RESULTS)
async def test_a_formula_in_ods_is_its_result(either: Pipeline, tmp_path: Path, cell: str) -> None:
    """The driver takes a formula that it cannot calculate for a text if its result is an empty one."""
    source = workbook(
        tmp_path / "a.ods", [text_cell("n"), text_cell("t")], [text_cell("a"), cell], [text_cell("b")] * 2
    )
    done = await either.to("GeoJson", source)
    assert [found["properties"] for found in readers.geojson(done.path)] == [
        {"n": "a", "t": RESULTS[cell]},
        {"n": "b", "t": "b"},
    ]
    assert done.output.warnings == (UNPLACED,)


async def test_formulas_without_results_in_ods_are_told(either: Pipeline, tmp_path: Path) -> None:
    """Their cells are empty, as in XLSX, also those that the driver could calculate."""
    cells = [
        '<table:table-cell table:formula="of:=SUM([.A2:.A3])"/>',
        f"<table:table-cell {FORMULA}></table:table-cell>",
    ]
    rows = [[text_cell("n"), text_cell("t")], *([text_cell("a"), cell] for cell in cells), [text_cell("b")] * 2]
    done = await either.to("GeoJson", workbook(tmp_path / "a.ods", *rows))
    assert [found["properties"]["t"] for found in readers.geojson(done.path)] == [None, None, "b"]  # type: ignore[index]  # an object
    told, _ = done.output.warnings
    assert told.startswith("The workbook holds no results for some of its formulas (2); their cells are empty.")


async def test_true_and_false_in_ods_are_booleans_in_every_language(either: Pipeline, tmp_path: Path) -> None:
    """The driver would read the texts of the cells."""
    said, text = 'office:value-type="boolean"', "<text:p>FALSCH</text:p>"
    cells = [
        f'<table:table-cell {said} office:boolean-value="true"><text:p>WAHR</text:p></table:table-cell>',
        f'<table:table-cell {FORMULA} office:boolean-value="false" {said}>{text}</table:table-cell>',
        f"<table:table-cell {said} office:boolean-value='true' />",
        f"<table:table-cell {said} office:boolean-value=' TRUE '/>",
        f'<table:table-cell {said} office:boolean-value="1"><text:p>WAHR</text:p></table:table-cell>',
        f'<table:table-cell {said} office:boolean-value="0"><text:p>FALSCH</text:p></table:table-cell>',
    ]
    rows = [[text_cell("n"), text_cell("t")], *([text_cell("a"), cell] for cell in cells)]
    done = await either.to("GeoJson", workbook(tmp_path / "a.ods", *rows))
    assert [found["properties"] for found in readers.geojson(done.path)] == [
        {"n": "a", "t": value} for value in (True, False, True, True, True, False)
    ]


TRUE_CELLS = {
    "a.xlsx": '<c r="B{0}" t="b"><v>1</v></c>',
    "a.ods": '<table:table-cell office:value-type="boolean" office:boolean-value="true"><text:p>JA</text:p>'
    "</table:table-cell>",
    "ours.ods": '<table:table-cell table:formula="of:=TRUE()" office:value-type="float" office:value="1"/>',
}


@pytest.mark.parametrize("name", TRUE_CELLS)
async def test_true_and_false_beside_texts_are_told(either: Pipeline, tmp_path: Path, name: str) -> None:
    """They become 1 and 0, and do not in a column of their own."""
    is_xlsx, cell = name.endswith("x"), TRUE_CELLS[name]
    for other, expected, count in (("x", "1", 1), (None, True, 0)):
        if is_xlsx:
            last = f'<c r="B3" t="str"><v>{other}</v></c>' if other else ""
            header = '<row r="1"><c r="A1" t="str"><v>n</v></c><c r="B1" t="str"><v>t</v></c></row>'
            first = f'<row r="2"><c r="A2" t="str"><v>a</v></c>{cell.format(2)}</row>'
            rows = f'{header}{first}<row r="3"><c r="A3" t="str"><v>b</v></c>{last}</row>'
            source = write(tmp_path / name, rows=rows)
        else:
            last = text_cell(other) if other else "<table:table-cell/>"
            source = workbook(
                tmp_path / name, [text_cell("n"), text_cell("t")], [text_cell("a"), cell], [text_cell("b"), last]
            )
        done = await either.to("GeoJson", source)
        assert [found["properties"] for found in readers.geojson(done.path)] == [
            {"n": "a", "t": expected},
            {"n": "b", "t": other},
        ]
        told = "True and false in columns that also hold other values (1) became 1 and 0."
        assert done.output.warnings.count(told) == count
