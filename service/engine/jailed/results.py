"""Writes the results of formulas, and true and false, in cells of an ODS workbook as its driver reads them.

Of a formula whose result is empty, or not in the workbook, the driver takes the formula for a text. Of true and false
it reads the text of the cell, which is in the language of who saved the workbook. Runs in the sandbox, for
`opendocument`; uses only the standard library.
"""

import re
from collections import Counter
from functools import partial

from service.engine.jailed.durations import CELL

TRUTH_VALUE = "boolean-value"
"""What cells with true or false hold, unless the driver wrote them."""
TRUTH_FORMULAS = ("of:=TRUE()", "of:=FALSE()")
"""The formulas of which the driver makes true and false, and which it writes for them."""
TRUTH = re.compile(rb"""\stable:formula\s*+=\s*+["']of:=(?:TRUE|FALSE)\(\)["']""")
"""What is in the start tag of such a cell."""
CELL_TAG = re.compile(rb"<table:table-cell\b[^<>]*+>")
UNCALCULATED, TRUTHS = "uncalculated", "truths"
EMPTY = re.compile(
    rb"<table:table-cell(?=[^<>]*?\stable:formula\s*+=)(?![^<>]*?\soffice:(?:date-|time-|boolean-)?+value\s*+=)"
    rb"(?P<said>(?:[^<>/]++|/(?!>))*+)"
    rb"(?P<content>/>|>\s*+(?:<text:p\s*+(?:/>|>\s*+</text:p\s*+>)\s*+)*+</table:table-cell\s*+>)"
)
"""A cell with a formula, and without a value or a text."""
TEXT = b"<text:p"
"""LibreOffice writes that a result is an empty text without its type, but with the text."""
TYPE = re.compile(rb"""\soffice:value-type\s*+=""")
FORMULA = re.compile(rb"""\stable:formula\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
TRUTH_CELL = re.compile(CELL % (TRUTH_VALUE.encode(), rb"""(?=\s*+(?i:true|false|[01])\s*+["'])"""))
SAID = re.compile(rb"""\s(?:table:formula|office:value-type|office:boolean-value)\s*+=\s*+(?:"[^"]*+"|'[^']*+')""")
REPEATED = re.compile(rb"""\stable:number-columns-repeated\s*+=\s*+["'](\d{1,7})["']""")
AS_DRIVER_WRITES = {
    True: b'<table:table-cell%b table:formula="of:=TRUE()" office:value-type="float" office:value="1"/>',
    False: b'<table:table-cell%b table:formula="of:=FALSE()" office:value-type="float" office:value="0"/>',
}


def plain_results(part: bytes, found: Counter[str]) -> bytes:
    """Cells whose results the driver reads; adds to `found` how many formulas have none, whose cells are empty.

    And how many cells hold true or false.
    """
    plain = TRUTH_CELL.sub(_truth, EMPTY.sub(partial(_without_formula, found=found), part))
    if b"of:=" in plain:
        found[TRUTHS] += sum(times_of(cell) for cell in CELL_TAG.findall(plain) if TRUTH.search(cell))
    return plain


def times_of(cell: bytes) -> int:
    """How many cells the start tag of one stands for."""
    repeated = REPEATED.search(cell)
    return int(repeated[1]) if repeated else 1


def _without_formula(cell: re.Match[bytes], found: Counter[str]) -> bytes:
    found[UNCALCULATED] += not TYPE.search(cell["said"]) and TEXT not in cell["content"]
    return b"<table:table-cell%b%b" % (FORMULA.sub(b"", cell["said"]), cell["content"])


def _truth(cell: re.Match[bytes]) -> bytes:
    return AS_DRIVER_WRITES[cell["value"].strip().lower() in {b"true", b"1"}] % SAID.sub(b"", cell["said"])
