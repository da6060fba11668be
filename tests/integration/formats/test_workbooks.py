"""What the open run finds in the parts of a workbook is what `jailed.cells` and `jailed.styles` find."""

import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from service.engine.jailed import cells, opendocument, styles
from service.engine.session import Answer
from service.engine.workbooks import ROWS_FOUND, Examined, Sought, workbook_warnings
from tests.integration.formats.test_opendocument_times import HEAD, TAIL
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
SHEET = "xl/worksheets/sheet1.xml"
TEXTS = "xl/sharedStrings.xml"
ADDRESSES = "xl/_rels/workbook.xml.rels"
PLAIN = {
    styles.BOOK_MEMBER: b"<workbook/>",
    styles.MEMBER: b"<styleSheet/>",
    SHEET: b"<worksheet/>",
    ADDRESSES: b"<Relationships/>",
}
REPEATED = 200_000
UNCALCULATED = b"<c r='A1' s='0'><f>1+1</f></c>"
CELLS: Mapping[str, bytes] = {
    "no result": UNCALCULATED * 3,
    "an empty result": b"<c r='A1' s='2'> <f>1&lt;2</f> <v/></c><c r='A2'><f t='shared' si='0'/><v></v></c>",
    "blanks": b"<c\n\tr='A1'>\n<f>1</f>\r\n<v />\n</c>",
    "a result": b"<c r='A1'><f>1+1</f><v>2</v></c>",
    "a text as result": b"<c r='A1' t='str'><f>A2</f><v></v></c><c t='s'><f>1</f></c><c t=\"str\"><f>1</f></c>",
    "other tags": b"<cols><f></f></cols><c><fx>1</fx></c><c><f>1</f><vx/></c><c r='A1'><v>2</v></c>",
    "errors": b"<c r='A1' t='e'><f>1/0</f><v>#DIV/0!</v></c><c t = 'e'><v>#N/A</v></c><c t='e'/><c t='error'/>",
    "texts that are not numbers": b"<c r='A1' t='str'><v>2 b</v></c><c t='str'><v>d1</v></c><c t='str'><v> </v></c>"
    b"<c t='str'/><c t='str'></c><c t='str'><f>A1</f><v/></c><c t='str'><v></v ></c>",
    "long numbers": b"<row r='2'><c r='A2'><v>12345678901234568</v></c><c r='B2' t='n'><f>1</f>"
    b"<v>-12345678901234567</v></c></row>"
    b"<row r='7'><c><v>1234567890123456789</v></c><c t='s'><v>12345678901234567</v></c></row>"
    b"<row><c t='str'><v>b 1234567890123456789</v></c><c><v>1234567890123456.5</v></c>"
    b"<c><v>1000000000000000000</v></c><c><v>9007199254740993</v></c><c><v>123456789012345</v></c></row>",
    "escapes": b"<c><is><t>_x000D__x00e4_ _x00_x000A_ _x12_ _xyz_ _x000g_ _x0041</t></is></c>",
    "no end of a tag": b"<c <f" * REPEATED + UNCALCULATED,
    "no end of a formula": b"<c><f>" * REPEATED + UNCALCULATED,
    "no end of a cell": b"<c><f></f> " * REPEATED + UNCALCULATED,
    "several pieces": (UNCALCULATED + b"<c r='A2'><v>1</v></c>_x000D_") * REPEATED,
    "cells without blanks": (b"<c><f>1+1</f></c><c\nr='A2'><v>1</v></c>") * REPEATED,
    "one piece without cells": b"x_x000D_" * 5 + b" " * (2 << 20) + UNCALCULATED,
}
ODD: Mapping[str, Mapping[str, bytes]] = {
    "days from 1904": {styles.BOOK_MEMBER: b"<workbook><workbookPr date1904='1'/></workbook>"},
    "perhaps days from 1904": {styles.BOOK_MEMBER: b'<workbook><workbookPr date1904 = "0"/></workbook>'},
    "beyond 64 bits": {SHEET: b"<c><v>100000000000000000000</v></c>"},
    "perhaps beyond 64 bits": {SHEET: b"<c r='A1'><f>B1</f><v>-9223372036854775808</v></c>"},
    "an ISO date": {SHEET: b"<c r='A1'><v>1</v></c><c r='B1' s='1' t='d'><v>2024-01-02</v></c>"},
    "an ISO date between blanks": {SHEET: b'<c r="A1"\n\tt = "d"\n><v>2024-01-02</v></c>'},
    "a text that looks like a number": {SHEET: b"<c r='A1' t='str'><f>B1</f><v> 00501</v></c>"},
    "a text that may be a number": {SHEET: b"<c r='A1' t='str'><v>&#x31;</v></c>"},
    "a text in CDATA": {SHEET: b"<c r='A1' t='str'><v><![CDATA[00501]]></v></c>"},
    "a text after a remark": {SHEET: b"<c r='A1' t='str'><!-- a --><v>00501</v></c>"},
    "a text after a formula in CDATA": {SHEET: b"<c r='A1' t='str'><f><![CDATA[A1<2]]></f><v>00501</v></c>"},
    "an error that looks like a number": {SHEET: b"<c r='A1' t='e'><v>007</v></c>"},
    "a prefix": {SHEET: b"<x:worksheet xmlns:x='a'><x:c s='1'/></x:worksheet>"},
    "a prefix of formats": {styles.MEMBER: b"<x:styleSheet xmlns:x='a'/>"},
    "a prefix of texts": {TEXTS: b"<?xml version='1.0'?><!-- a --><x:sst xmlns:x='a'/>"},
    "a prefix of the main part": {styles.BOOK_MEMBER: b"<x:workbook xmlns:x='a'/>"},
    "another prefix of references": {styles.BOOK_MEMBER: b"<workbook><sheet name='a' ns:id='rId1'/></workbook>"},
    "a prefix of addresses": {ADDRESSES: b"<x:Relationships xmlns:x='a'/>"},
    "formats without end": {styles.MEMBER: b"<styleSheet><cellXfs><xf numFmtId='0'/>"},
    "a long tag": {SHEET: b"<c r='A1' s='1' %s/>" % (b"a" * 400)},
    "a format beyond all": {SHEET: b"<c s='4096'/>"},
    "a long format": {styles.MEMBER: b"<styleSheet><numFmt numFmtId='164' formatCode='%s'/>" % (b"0" * 256)},
    "a low number": {
        SHEET: b"<c s='0'/>",
        styles.MEMBER: b"<styleSheet><numFmts><numFmt numFmtId='100' formatCode='yyyy-mm-dd'/></numFmts>"
        b"<cellXfs><xf numFmtId='100'/></cellXfs></styleSheet>",
    },
    "a number of two formats": {
        SHEET: b"<c s='0'><v>45293.5</v></c>",
        styles.MEMBER: b"<styleSheet><numFmts><numFmt numFmtId='165' formatCode='mm/dd/yyyy'/>"
        b"<numFmt numFmtId='165' formatCode='yyyy-mm-dd hh:mm:ss'/></numFmts>"
        b"<cellXfs><xf numFmtId='165'/></cellXfs></styleSheet>",
    },
    "a format without end": {styles.MEMBER: b"<styleSheet><numFmt numFmtId='164' formatCode='0.0"},
    "a workbook in UTF-16": {styles.BOOK_MEMBER: "<workbook/>".encode("utf-16")},
    "styles in UTF-16": {styles.MEMBER: "<styleSheet/>".encode("utf-16-be")},
    "a sheet in UTF-16": {SHEET: "<worksheet/>".encode("utf-16-le")},
    "texts in UTF-16": {TEXTS: "<sst><si><t>_x000D_</t></si></sst>".encode("utf-16")},
    "readings of texts": {TEXTS: b"<sst><si><t>a</t><rPh sb='0' eb='1'><t>b</t></rPh></si></sst>"},
    "readings in a cell": {SHEET: b"<c t='inlineStr'><is><t>a</t><rPh sb='0' eb='1'><t>b</t></rPh></is></c>"},
    "runs of text in a cell": {SHEET: b"<row/><c t='inlineStr'><is><r><t>a</t></r><r><t>b</t></r></is></c>"},
    "a large part": {styles.MEMBER: b"<styleSheet>" + b" " * (1 << 20)},
}
FORMATS = b"""<styleSheet><numFmts count="4"><numFmt numFmtId="164" formatCode="0.00"/>
<numFmt formatCode='d&quot;x&quot;"' numFmtId='165'/><numFmt numFmtId="166" formatCode="unused"/></numFmts>
<cellStyleXfs><xf numFmtId="27"/></cellStyleXfs><cellXfs count="6"><xf numFmtId="0"/><xf numFmtId="164"/>
<xf numFmtId='165'><alignment/></xf><xf numFmtId="14"/><xf numFmtId="166"/><xf/></cellXfs></styleSheet>"""


DATED = b"<row r='1'><c r='A1' s='1'><v>45293.5</v></c><c r='B1' s='2'><v>45293.5</v></c><c r='C1' s='3'/></row>"
DATES = b"""<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy-mm-dd hh:mm:ss"/>
<numFmt formatCode='d&quot;x&quot;' numFmtId='165'/><numFmt numFmtId="166" formatCode="0.00"/></numFmts>
<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/></cellXfs></styleSheet>"""


def write(path: Path, parts: Mapping[str, bytes]) -> None:
    """A workbook with `parts`, and others that say nothing."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in {**PLAIN, **parts}.items():
            if content:
                book.writestr(name, content)


async def found_by_both(converters: Converters, parts: Mapping[str, bytes]) -> Counter[str]:
    """What the open run finds in a workbook, and the other program as well."""
    async with converters.open_run(("XLSX",)) as (held, directory):
        write(directory / "in.xlsx", parts)
        found = Counter((await held.ask(Examined, "examine", "in.xlsx")).found())
    assert Counter(styles.main(str(directory / "in.xlsx"), str(directory / "plain.xlsx"))) == found
    return found


async def test_cells_are_counted_as_by_the_other_program(converters: Converters) -> None:
    """Also in texts that several cells share, and in sheets that were made to take long."""
    async with converters.open_run(("XLSX",)) as (held, directory):
        for number, (name, text) in enumerate(CELLS.items()):
            write(directory / f"in{number}.xlsx", {SHEET: text, TEXTS: b"<si><t>_x000D_</t></si>"})
            with zipfile.ZipFile(directory / f"in{number}.xlsx") as book:
                errors = cells.mistaken(book).get(SHEET, Counter())[cells.ERROR]
                expected = (*cells.scan(book), errors, *cells.rounded(book))
            found = await held.ask(Examined, "examine", f"in{number}.xlsx")
            assert (found.ok, found.messages) == (True, ""), name
            counts = (found.uncalculated, found.escaped, found.truths, found.errors, found.rounded, found.first_rounded)
            assert counts == expected, name
            assert (counts[4:] == (3, 2)) == (name == "long numbers")
            assert expected != (0, 1, 0, 0, 0, 0) or name in {
                "a result",
                "a text as result",
                "other tags",
                "texts that are not numbers",
            }


async def test_unusual_workbooks_are_left_to_the_other_program(converters: Converters) -> None:
    """Rather than judged differently. One that lacks a part is damaged, as its driver will say."""
    lacking = {f"no {name}": {name: b""} for name in PLAIN}
    async with converters.open_run(("XLSX",)) as (held, directory):
        for number, (name, parts) in enumerate({**ODD, **lacking}.items()):
            write(directory / f"in{number}.xlsx", parts)
            assert not (await held.ask(Examined, "examine", f"in{number}.xlsx")).ok, name
        (directory / "none.xlsx").write_bytes(b"PK no ZIP archive")
        assert not (await held.ask(Examined, "examine", "none.xlsx")).ok


async def test_only_the_formats_that_cells_have_are_told(converters: Converters) -> None:
    """As they are written; a workbook may define many that no cell has."""
    used = b"<c r='A1' s='1'/><c s = \"2\" r='B1'/><c r='C1' s='3'><v>1</v></c><c r='D1' s='5'/><c r='E1' s='99'/><c/>"
    async with converters.open_run(("XLSX",)) as (held, directory):
        write(directory / "in.xlsx", {SHEET: used, styles.MEMBER: FORMATS})
        found = await held.ask(Examined, "examine", "in.xlsx")
        assert (found.ok, found.codes, found.built_in) == (True, ("0.00", 'd&quot;x&quot;"'), (14, 0))
        write(directory / "plain.xlsx", {SHEET: b"<c r='A1'><v>1</v></c>", styles.MEMBER: FORMATS})
        found = await held.ask(Examined, "examine", "plain.xlsx")
        assert (found.ok, found.codes, found.built_in) == (True, (), ())


MOMENTS = b"".join(
    b"<c r='%s' s='%d'%s><v>%s</v></c>" % cell
    for cell in (
        (b"A1", 1, b"", b"45293"),
        (b"BC1", 4, b" t='n'", b"0.5"),
        (b"I1", 3, b"", b"2020"),
        (b"E1", 1, b" t='s'", b"0"),
        (b"A11", 1, b"", b"45293.000011562500"),
        (b"B2", 4, b"", b"%.15f" % (100.999 / 86400)),
        (b"C2", 1, b"", b"%.12f" % (45293 + 100.998 / 86400)),
        (b"D2", 1, b"", b"%.12f" % (45293 + 100.9996 / 86400)),
        (b"E2", 3, b"", b"%.15f" % (100.999 / 86400)),
        (b"F2", 1, b"", b"%.12f" % (45293 + 100.001 / 86400)),
        (b"G2", 1, b"", b"%.12f" % (45293 + 100.0002 / 86400)),
        (b"H2", 1, b"", b"%.12f" % (45293 + 100.002 / 86400)),
    )
)
MOMENTS += b"<c s='1' r='F1'><f>A1</f><v>2.5</v></c><c r='G1' s='1'/><c r='H1' s='1'><v>no</v></c>"
DAY = b"<c s='1'><v>45293</v></c>"
LATE_AND_NAMED = {
    MOMENTS: (3, 3),
    b"<row>%b</row><row>%b</row>" % (DAY, MOMENTS): (3, 4),
    b"<row r='1' spans='1:2'>%b%b</row>\n<row r='2'>%b</row>" % (DAY, DAY, DAY): (0, 2),
    b"<row r='2'>%b</row><row>%b</row>" % (DAY, DAY): (0, 0),
    b"<row r='1'/><row>%b</row>" % DAY: (0, 0),
    b"<row>%b</row><row>%b</row>" % (DAY, DAY * REPEATED): (0, 1),
}
"""Sheets, their times with 0.001 or 0.999 s, and moments in a first row; cells and rows need not say where they are."""


@pytest.mark.parametrize("sheet", LATE_AND_NAMED, ids=range(len(LATE_AND_NAMED)))
async def test_moments_that_the_driver_changes_are_counted_as_by_the_other_program(
    converters: Converters, sheet: bytes
) -> None:
    """Those in a first row, and those within 0.001 s of a whole second, if their format is one of dates or times."""
    formats = DATES.replace(b"</cellXfs>", b"<xf numFmtId='21'/></cellXfs>")
    found = await found_by_both(converters, {styles.MEMBER: formats, SHEET: sheet})
    assert (found["late"], found["named"]) == LATE_AND_NAMED[sheet]


DATE_ONLY = b"<xf numFmtId='0'/><xf numFmtId='14'/><xf numFmtId='164'/><xf numFmtId='165'/><xf numFmtId='22'/>"
TIMES_BEHIND_DATES = {
    b"<row r='3'><c r='A3' s='1'><v>45293.5</v></c></row>": (1, 3),
    b"<row r='3'><c r='A3' s='1'><v>45293</v></c></row><row r='7'><c s='2'><v>45293.25</v></c></row>": (1, 7),
    b"<row><c s='1'><v>45293.000000005</v></c><c s='2'><v>45293.999999995</v></c></row>": (0, 0),
    b"<row><c s='0'><v>1.5</v></c><c s='3'><v>1.5</v></c><c s='4'><v>1.5</v></c></row>": (0, 0),
    b"<row/><row><c s='1' t='s'><v>0</v></c><c s='1'/><c s='1'><f>A1</f><v>0.75</v></c></row>": (1, 2),
}
"""Sheets, how many of their dates have a time that their format does not show, and the first row of these."""


@pytest.mark.parametrize("sheet", TIMES_BEHIND_DATES, ids=range(len(TIMES_BEHIND_DATES)))
async def test_times_behind_formats_of_dates_are_told_by_both_programs(converters: Converters, sheet: bytes) -> None:
    """The driver reads what the format shows, and the time was lost without a warning."""
    formats = b"""<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/>
    <numFmt numFmtId="165" formatCode="yyyy-mm-dd hh:mm"/></numFmts><cellXfs>%b</cellXfs></styleSheet>"""
    found = await found_by_both(converters, {styles.MEMBER: formats % DATE_ONLY, SHEET: sheet})
    assert (found["timed"], found["first_timed"]) == TIMES_BEHIND_DATES[sheet]
    assert any("The first is in row" in warning for warning in workbook_warnings(found)) == bool(found["timed"])


CLOCKS = b"""<styleSheet><numFmts><numFmt numFmtId="164" formatCode="h:mm AM/PM"/>
<numFmt numFmtId="165" formatCode="[hh]:mm"/><numFmt numFmtId="166" formatCode="mm:ss.0"/></numFmts><cellXfs>
<xf numFmtId='20'/><xf numFmtId='164'/><xf numFmtId='165'/><xf numFmtId='166'/><xf numFmtId='46'/><xf numFmtId='14'/>
</cellXfs></styleSheet>"""
BEHIND_CLOCKS = {
    b"<row r='3'><c r='A3' s='0'><v>0.5</v></c><c r='B3' s='1'><v>0</v></c></row>": (0, 0, 0, 0),
    b"<row r='3'><c r='A3' s='0'><v>1.5</v></c></row><row r='5'><c r='A5' s='1'><v>45293.5</v></c></row>": (2, 3, 0, 0),
    b"<row/><row><c s='1'><v>-0.25</v></c><c s='5'><v>45293</v></c></row>": (1, 2, 0, 0),
    b"<row r='2'><c s='2'><v>1.5</v></c><c s='3'><v>0.001</v></c></row><row><c s='4'><v>0</v></c></row>": (0, 0, 3, 2),
    b"<row r='2'><c s='2' t='s'><v>0</v></c><c s='3'/></row>": (0, 0, 0, 0),
    b"<row r='2'><c s='1'><v>0.99999999</v></c><c s='1'><v>0.999999995</v></c></row>": (1, 2, 0, 0),
}
"""Sheets, how many of their times of day lose days, how many are elapsed times, and the first row of each."""


@pytest.mark.parametrize("sheet", BEHIND_CLOCKS, ids=range(len(BEHIND_CLOCKS)))
async def test_days_behind_formats_of_times_are_told_by_both_programs(converters: Converters, sheet: bytes) -> None:
    """The driver reads the time that the format shows, and elapsed times as numbers."""
    found = await found_by_both(converters, {styles.MEMBER: CLOCKS, SHEET: sheet})
    kinds = ("dated", "first_dated", "elapsed", "first_elapsed")
    assert tuple(found[kind] for kind in kinds) == BEHIND_CLOCKS[sheet]
    warnings = " ".join(workbook_warnings(found))
    assert ("lost the days" in warnings, "Elapsed times" in warnings) == (found["dated"] > 0, found["elapsed"] > 0)


BESIDE_NUMBERS = {
    '0" km"': "worded",
    '"No. "0': "worded",
    "0\\d": "worded",
    "0.0,\\M": "worded",
    '[Red]0;-0" below"': "worded",
    'General" d"': "worded",
    '"yes";"no"': "worded",
    "[$€-407]#,##0.00": "worded",
    "[$EUR] 0": "worded",
    "#,##0.00 $": "worded",
    '0"°"00': "worded",
    "0.0%": "percent",
    '_-* #,##0.00_-;-* "-"??_-': "",
    "[$-409]0": "",
    "[Blue][>5]0.0": "",
    "0.00E+00": "",
    "000\\-00": "",
    "General": "",
    'yyyy"年"': "",
    'h" h"': "",
    "[h]:mm": "",
}
"""Formats, and what of them is left out beside numbers."""


@pytest.mark.parametrize("code", BESIDE_NUMBERS)
async def test_what_formats_show_beside_numbers_is_told_by_both_programs(converters: Converters, code: str) -> None:
    """Units, currencies and percentages are in no value; formats of dates and times have none."""
    formats = f"""<styleSheet><numFmts><numFmt numFmtId="164" formatCode={quoteattr(code)}/></numFmts><cellXfs>
    <xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="9"/><xf numFmtId="44"/></cellXfs></styleSheet>"""
    sheet = b"<row r='2'><c s='1'><v>0.5</v></c><c s='0'><v>1</v></c></row><row r='4'><c s='1'><v>0.25</v></c></row>"
    found = await found_by_both(converters, {styles.MEMBER: formats.encode(), SHEET: sheet})
    assert {kind: (found[kind], found[f"first_{kind}"]) for kind in ("worded", "percent") if found.get(kind)} == (
        {BESIDE_NUMBERS[code]: (2, 2)} if BESIDE_NUMBERS[code] else {}
    )
    built_in = b"<row r='7'><c s='2'><v>0.5</v></c><c s='3'><v>1</v></c><c s='3' t='s'><v>0</v></c></row>"
    found = await found_by_both(converters, {styles.MEMBER: formats.encode(), SHEET: built_in})
    assert [found[kind] for kind in ("worded", "first_worded", "percent", "first_percent")] == [1, 7, 1, 7]
    assert sum("as in 5 km" in told or told.startswith("Percentages (1)") for told in workbook_warnings(found)) == 2


MERGED = {
    b"<row r='7'/><mergeCells count='2'><mergeCell ref='B3:B5'/><mergeCell\nref='AA2:C2'></mergeCell></mergeCells>": (
        2,
        2,
    ),
    b"<row/><c t='inlineStr'><is><t>mergeCell ref='A2:A3'</t></is></c><mergeCells/>": (0, 0),
}
"""Ends of sheets, how many of their cells are merged ones, and the first row of these."""


@pytest.mark.parametrize("sheet", MERGED, ids=range(len(MERGED)))
async def test_merged_cells_are_told_by_both_programs(converters: Converters, sheet: bytes) -> None:
    """Labels of groups were in the first row of each, and missing in all others, without a warning."""
    found = await found_by_both(converters, {SHEET: sheet})
    assert (found["merged"], found["first_merged"]) == MERGED[sheet]
    told = [warning for warning in workbook_warnings(found) if warning.startswith("Merged cells (2) have")]
    assert len(told) == bool(found["merged"])


CODES = b"""<styleSheet><numFmts><numFmt numFmtId="164" formatCode="00000"/>
<numFmt numFmtId="165" formatCode="&quot;No. &quot;000\\-00;[Red]0"/><numFmt numFmtId="166" formatCode="00.00"/>
<numFmt numFmtId="167" formatCode="#,##0"/></numFmts><cellXfs>
<xf numFmtId='0'/><xf numFmtId='164'/><xf numFmtId='165'/><xf numFmtId='166'/><xf numFmtId='167'/><xf numFmtId='164'/>
</cellXfs></styleSheet>"""
WITH_ZEROS = {
    b"<row><c s='1'><v>94105</v></c><c s='0'><v>501</v></c><c s='3'><v>5</v></c><c s='4'><v>5</v></c></row>": 0,
    b"<row><c s='1'><v>94105</v></c></row><row><c s='5'><v>501</v></c></row><row><c s='2'><v>12345</v></c></row>": 2,
    b"<row><c s='2'><v>7</v></c><c s='1' t='s'><v>0</v></c><c s='1'><v>0.5</v></c><c s='1'><v>-5</v></c></row>": 1,
}
"""Sheets, and how many of their numbers have formats that show zeros before some of them."""


@pytest.mark.parametrize("sheet", WITH_ZEROS, ids=range(len(WITH_ZEROS)))
async def test_zeros_that_a_format_shows_are_told_by_both_programs(converters: Converters, sheet: bytes) -> None:
    """Postal codes lost them without a warning."""
    found = await found_by_both(converters, {styles.MEMBER: CODES, SHEET: sheet})
    assert found["padded"] == WITH_ZEROS[sheet]
    assert any("Zeros that formats show" in warning for warning in workbook_warnings(found)) == bool(found["padded"])


async def test_formats_that_the_driver_mistakes_are_replaced_as_by_the_other_program(converters: Converters) -> None:
    """In a copy in which everything else is as it was."""
    parts = {styles.MEMBER: DATES, SHEET: DATED, "xl/media/a.bin": bytes(range(256)) * 300}
    codes = [code for text in ("yyyy-mm-dd hh:mm:ss", "d&quot;x&quot;") for code in (text, styles.understood(text))]
    async with converters.open_run(("XLSX",)) as (held, directory):
        for ending in (b"", b"a remark"):
            write(directory / "in.xlsx", parts)
            with zipfile.ZipFile(directory / "in.xlsx", "a") as book:
                book.comment = ending
            assert (await held.ask(Answer, "restyle", "in.xlsx", "copy.xlsx", *codes)).ok
            styles.main(str(directory / "in.xlsx"), str(directory / "other.xlsx"))
            with zipfile.ZipFile(directory / "copy.xlsx") as copy, zipfile.ZipFile(directory / "other.xlsx") as other:
                assert copy.testzip() is None
                assert {name: copy.read(name) for name in copy.namelist()} == {
                    name: other.read(name) for name in other.namelist()
                }
                assert sorted(copy.namelist()) == sorted(other.namelist())


async def test_an_unusual_archive_is_not_copied(converters: Converters) -> None:
    """Nor is a file left that could be taken for a copy."""
    async with converters.open_run(("XLSX",)) as (held, directory):
        write(directory / "whole.xlsx", {styles.MEMBER: DATES, SHEET: DATED})
        whole = (directory / "whole.xlsx").read_bytes()
        directory_at, size = whole.index(b"PK\1\2"), len(whole)
        for number, content in enumerate(
            (
                b"in front" + whole,
                whole[:-10],
                whole[: directory_at + 28] + b"\xff\xff" + whole[directory_at + 30 :],
                whole[:directory_at] + whole[directory_at:].replace(b"xl/styles.xml", b"xl/stylez.xml"),
                whole[: size - 22 + 12] + b"\xff" * 8 + whole[size - 2 :],
                b"PK",
                b"",
            )
        ):
            (directory / f"in{number}.xlsx").write_bytes(content)
            assert not (await held.ask(Answer, "restyle", f"in{number}.xlsx", "copy.xlsx", "0.00", "0")).ok, number
            assert not (directory / "copy.xlsx").exists()


def rows(*cells: str) -> bytes:
    """A sheet with a row of two or more cells for each text; `x` stands for a text, `-` for an empty cell."""
    kinds = {"x": "<c t='s'><v>0</v></c>", "-": "<c s='0'/>", "t": "<c t='b'><v>1</v></c>", "e": "<c t='str'><v/></c>"}
    made = ("".join(kinds.get(cell, f"<c>{cell}</c>") for cell in row.split(" ")) for row in cells)
    return "".join(f"<row>{row}</row>" for row in made).encode()


N = "<v>1</v>"
HIDING = b"<cols><col min='1' max='1'/><col\n max='16384' hidden='true' min='2'/></cols>"
SUMS = [
    *("SUM(A2:A3)", "SUM($A$2:A3)", "SUBTOTAL(109,A2:A$3)", "SUBTOTAL(9,Table1[n])", "SUBTOTAL(103,[n])"),
    *(
        "SUM(A$2:A4)",
        "SUM(B2:B3)",
        "SUM(A2:B3)",
        "SUM(A2:A2)",
        "SUM(A2:A3)/2",
        "SUM(Table1[n])",
        "SUBTOTAL(9,A4)",
        "A2+A3",
    ),
]
OF_ROWS: Mapping[bytes, dict[str, int]] = {
    rows("x x", f"{N} x", f"{N} {N}", "- x", f"{N} {N}"): {},
    rows("x x", f"x {N}", f"{N} {N}", f"{N} {N}", f"{N} t"): {"mixed": 3, "first_mixed": 2},
    rows("x x", f"{N} -", f"{N} x", f"{N} {N}", f"{N} {N}"): {"mixed": 2, "first_mixed": 3},
    rows("x x", f"{N} x", f"{N} t", f"{N} {N}", f"x {N}"): {"mixed": 5, "first_mixed": 2},
    rows("x x", "- -", f"{N} x", "- e", "<f>A1</f><v></v> -", "x x", "- -"): {"blank_rows": 3, "first_blank_rows": 2},
    b"<row r='3'><c r='B3'><v>1</v></c></row><row r='7'><c r='B7'><v>1</v></c></row>": {
        "blank_rows": 3,
        "first_blank_rows": 4,
    },
    HIDING + rows("x x", f"{N} x"): {"hidden_columns": 1},
    HIDING + rows("x -", f"{N} -"): {},
    HIDING + b"<row r='1'><c r='A1'><v>1</v></c><c r='AA1'><v>1</v></c><c r='C1'><v>1</v></c></row>": {
        "hidden_columns": 2
    },
    rows("x", N) + b"<row r='3' hidden='1'><c><v>1</v></c></row><row hidden=\"true\"><c s='1'/></row>": {
        "hidden_rows": 1,
        "first_hidden_rows": 3,
    },
    **{
        rows("x", N, N, f"<f>{formula}</f>{N}"): {"totals": 1, "first_totals": 4} if number < 5 else {}
        for number, formula in enumerate(SUMS)
    },
    rows("x", f"<f>SUM(A2:A3)</f>{N}"): {},
    rows(f"<f>SUM(A2:A3)</f>{N}", N, N): {},
    rows("x x", f"{N} {N}", f"{N} {N}", f"<f>SUM(A2:A3)</f>{N} <f>SUM(B2:B3)</f>{N}"): {"totals": 1, "first_totals": 4},
}
"""Sheets, and what is told of their rows and columns."""


async def test_what_rows_and_columns_hold_is_seen_by_both_programs(converters: Converters) -> None:
    """Hidden ones with values, empty rows between others, sums of other rows, and texts in columns of numbers."""
    for sheet, expected in OF_ROWS.items():
        found = await found_by_both(converters, {SHEET: sheet, TEXTS: b"<si><t>x</t></si>"})
        told = {name: count for name, count in found.items() if count and name in ROWS_FOUND}
        assert told == expected, sheet


UNLIKE_FORMATS = b"""<styleSheet><numFmts><numFmt numFmtId="164" formatCode="0.00;[Red]0.00 &quot;d&quot;\\d"/>
<numFmt numFmtId="165" formatCode="[h]:mm:ss"/><numFmt numFmtId="166" formatCode="d.m.yy"/>
<numFmt numFmtId="167" formatCode="h:mm"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/>
<xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="22"/><xf numFmtId="46"/></cellXfs></styleSheet>"""
UNLIKE: list[tuple[Sequence[int | str | None], int]] = [
    *(
        ([0, 1, 2, 6], 0),
        ([3, 3, 5], 0),
        ([4, 4], 0),
        ([3, 0], 1),
        ([3, 4], 1),
        ([4, None, 5], 2),
        ([1, 3], 1),
        ([2, 4], 1),
        ([6, 4], 1),
        ([5, None, 0], 2),
    ),
    ([3, 0, "text"], 0),
]
"""The formats of cells below a header, and in which of these rows the first of the second kind is; 0 if none."""


async def test_dates_beside_numbers_in_a_column_are_told(converters: Converters, tmp_path: Path) -> None:
    """Their driver makes texts of both, unless texts do so anyway; the open run leaves them to the program."""
    cell: dict[int | str | None, str] = {"text": "<c t='s'><v>0</v></c>", None: "<c/>"}
    for formats, first in UNLIKE:
        cells = [cell.get(of, f"<c s='{of}'><v>1.5</v></c>") for of in formats]
        sheet = "".join(f"<row>{made}</row>" for made in ("<c t='s'><v>0</v></c>", *cells)).encode()
        async with converters.open_run(("XLSX",)) as (held, directory):
            write(directory / "in.xlsx", {SHEET: sheet, TEXTS: b"<si><t>x</t></si>", styles.MEMBER: UNLIKE_FORMATS})
            is_seen = not (await held.ask(Examined, "examine", "in.xlsx")).ok
            found = styles.main(str(directory / "in.xlsx"), str(tmp_path / "plain.xlsx"))
        count = len([of for of in formats if of is not None])
        expected = (count, first + 2) if first else (0, 0)
        assert (found.get("unlike", 0), found.get("first_unlike", 0)) == expected, formats
        assert is_seen == bool(first), formats


def ods_rows(*cells: str) -> str:
    """Rows of ODS with an x for each text, an n for a number, = and a formula of one, - for none, t for true.

    And an e for a text that is empty, a d for a date, a c for a time of day; digits before a row or cell repeat it.
    """

    def tag(name: str, said: str, content: str) -> str:
        digits = re.match(r"\d*", said)
        repeated = f' table:number-{name.split("-")[1]}s-repeated="{digits[0]}"' if digits and digits[0] else ""
        return f"<table:{name}{repeated.replace('cells', 'columns')}{content}"

    def cell(said: str) -> str:
        number = ' office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>'
        kinds = {
            "x": ' office:value-type="string"><text:p>x</text:p></table:table-cell>',
            "n": number,
            "t": ' table:formula="of:=TRUE()" office:value-type="float" office:value="1"/>',
            "-": "/>",
            "e": ' office:value-type="string"><text:p/> <text:p></text:p></table:table-cell>',
            "c": " office:value-type='time' office:time-value='PT12H30M00S'/>",
            "d": " office:value-type='date' office:date-value='2024-01-02'/>",
            "u": "><text:p>x</text:p></table:table-cell>",
        }
        kind, _, formula = said.lstrip("0123456789").partition("=")
        return tag("table-cell", said, f' table:formula="of:={formula}"{number}' if formula else kinds[kind])

    def row(said: str) -> str:
        times = re.match(r"(\d+)\*", said)
        content = said[times.end() :] if times else said
        return tag("table-row", times[1] if times else "", f">{''.join(map(cell, content.split()))}</table:table-row>")

    return "".join(map(row, cells))


OF_ODS_ROWS: Mapping[str, dict[str, int]] = {
    ods_rows("x x", "n x", "n n", "- x", "n n", "1000*20-"): {},
    ods_rows("x x", "x n", "n n", "n n", "n t"): {"mixed": 3, "first_mixed": 2},
    ods_rows("x x", "2*n -", "d u", "n n", "n n"): {"mixed": 2, "first_mixed": 4, "unlike": 5, "first_unlike": 4},
    ods_rows("x 3x", "n x", "5*2n e", "4n"): {"mixed": 6, "first_mixed": 2},
    ods_rows("x", "x", "x", "n"): {},
    ods_rows("x x", "n d", "- d", "d n", "t d"): {"unlike": 6, "first_unlike": 4},
    ods_rows("x x", "n c", "- c", "d d", "d c"): {"unlike": 7, "first_unlike": 4},
    ods_rows("x x", "d c", "d c"): {},
    ods_rows("x x", "- -", "x x", "2*- e", "n -", "x x", "-"): {"blank_rows": 3, "first_blank_rows": 2},
    ods_rows("x", "n", "n", "=SUM([.A2:.A3])"): {"totals": 1, "first_totals": 4},
    ods_rows("x x", "n n", "n n", "n =SUBTOTAL(9;[.B$2:.$B3])"): {"totals": 1, "first_totals": 4},
    ods_rows("x", "n", "n", "=SUM([.A2:.A4])", "=SUM([.B2:.B3])", "=SUM([.A2:.A3])/2"): {},
}
"""Sheets of ODS, and what is told of their rows and columns."""


@pytest.mark.parametrize(("sheet", "expected"), OF_ODS_ROWS.items(), ids=range(len(OF_ODS_ROWS)))
async def test_what_rows_of_ods_hold_is_told_as_of_xlsx(
    converters: Converters, tmp_path: Path, sheet: str, expected: dict[str, int]
) -> None:
    """By the same rules; the open run tells whether the program has to look, which it never has to in vain."""
    async with converters.open_run(("ODS",)) as (held, directory):
        with zipfile.ZipFile(directory / "in.ods", "w") as book:
            book.writestr(opendocument.MEMBER, f"{HEAD}{sheet}{TAIL}")
        sought = await held.ask(Sought, "seek", "in.ods", opendocument.MEMBER, *opendocument.SOUGHT)
        found = opendocument.main(str(directory / "in.ods"), str(tmp_path / "plain.ods"))
    assert {name: count for name, count in found.items() if count and name in ROWS_FOUND} == expected
    may_be_odd = any(mark in sheet for mark in opendocument.SOUGHT)
    assert sought.holds == (bool(expected) or may_be_odd)


def test_repeated_cells_of_ods_are_counted_up_to_what_its_driver_reads(tmp_path: Path) -> None:
    """A file of some kilobytes may have thousands of millions, which took as long as a job may."""
    with zipfile.ZipFile(tmp_path / "in.ods", "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr(opendocument.MEMBER, f"{HEAD}{ods_rows('2000x', *['2000n'] * 1_000, 'x')}{TAIL}")
    found = opendocument.main(str(tmp_path / "in.ods"), str(tmp_path / "plain.ods"))
    assert found["mixed"] == 1_000
    with zipfile.ZipFile(tmp_path / "in.ods", "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr(opendocument.MEMBER, f"{HEAD}{ods_rows('2000x', '2000x', *['2000n'] * 1_000)}{TAIL}")
    found = opendocument.main(str(tmp_path / "in.ods"), str(tmp_path / "plain.ods"))
    assert 1_000 < found["mixed"] < 2_000 * 1_000


@pytest.mark.parametrize("text", [b"<si/>", b"<si><t/></si>", b"<si>\n<t xml:space='preserve'></t></si>"])
async def test_texts_that_may_be_empty_change_no_numbers(converters: Converters, text: bytes) -> None:
    """The driver takes their cells for empty ones, and only looking at each text would show which these are."""
    found = await found_by_both(converters, {SHEET: rows("x", "x", N, N), TEXTS: b"<sst>%b<si><t>a</t></si>" % text})
    assert not found["mixed"]


@pytest.mark.parametrize(("other", "told"), [(rows("x", N), 2), (b"<row r='1'/>", 0)])
async def test_hidden_sheets_are_seen_if_all_have_values(converters: Converters, other: bytes, told: int) -> None:
    """Otherwise the hidden ones may be those without, of which nothing becomes a layer."""
    sheets = b"<sheet name='a' state='visible' r:id='rId1'/><sheet name='b' state='hidden' r:id='rId2'/>"
    book = b"<workbook><sheets>%b<sheet state='veryHidden' name='c' r:id='rId3'/></sheets></workbook>" % sheets
    parts = {styles.BOOK_MEMBER: book, SHEET: rows("x", N), SHEET.replace("1", "2"): other}
    assert (await found_by_both(converters, parts))["hidden_sheets"] == told
