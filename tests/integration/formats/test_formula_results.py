"""Workbooks whose cells hold texts and errors as the results of formulas, which some programs write for all texts."""

from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_iso_dates import write

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
