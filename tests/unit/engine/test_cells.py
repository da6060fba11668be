"""What is found in the text of a workbook, also in one that was made to take long.

The crafted texts are as long as sheets may be: a pattern that looked on to the end at every tag would take hours.
"""

import io
import re
import zipfile
from pathlib import Path

import pytest

from service.engine.jailed import cells, styles

SHEET = "xl/worksheets/sheet1.xml"
REPEATED = 200_000
EMPTY = b"<styleSheet/>"
FORMULAS = {
    b"<c r='A1'><f>1+1</f></c>": 1,
    b"<c r='A1' s='2'> <f>1&lt;2</f> <v/></c>": 1,
    b"<c r='A1'><f t='shared' si='0'/><v></v></c>": 1,
    b"<c r='A1'><f>1+1</f><v>2</v></c>": 0,
    b"<c r='A1' t='str'><f>A2</f><v></v></c>": 0,
    b"<c r='A1'><v>2</v></c>": 0,
}
TEXTS = {
    b"<c r='A1' s='1' t='d'><v>2024-01-02</v></c>": b"<c r='A1' s='1' t='inlineStr'><v>2024-01-02</v></c>",
    b'<x:c\nt = "d"\tr="A1"><x:f>A2</x:f><x:v/></x:c>': b'<c\nt = "inlineStr"\tr="A1"><f>A2</f><v/></c>',
    b'<c t="str"%s><v>2024</v></c>' % (b" " * 1000): b'<c t="inlineStr"%s><v>2024</v></c>' % (b" " * 1000),
    b'<c%s t="e"><v>#N/A</v></c>' % (b" " * 1000): b'<c%s t="inlineStr"><v>#N/A</v></c>' % (b" " * 1000),
    b"<c r='A1' t='d'/>": b"",
    b"<c r='d' t='n'><v>1</v></c><col t='d'></col>": b"",
    b"<c r='str'><v t='e'>1</v></c>": b"",
    b"<c at='d'><v>1</v></c><c x:t='d'></c>": b"",
}
"""Cells, and the same as texts of the other type if the driver ignores theirs and they have content."""
TYPE = re.compile(rb"""t\s*=\s*["'](d|e|str)["']""")
NUMBERS = {
    b'<c r="A1" s="3"><v>1.5</v></c>': {3: 1.5},
    b'<x:c r="A1" s="3">\n<x:f>1&lt;2</x:f>\n<x:v> -2e3</x:v></x:c>': {3: 0.0},
    b"<c s='3'><f t='shared' si='0'/><v>.25</v></c><c s='3'><v>0.125</v></c>": {3: 0.25},
    b'<c r="A1" s="3" t="n"><v>7</v></c><c r="A2" t="s" s="4"><v>7</v></c>': {3: 7.0},
    b'<c r="A1" s="3"/><c r="B1"><v>9</v></c><cols s="4"><v>8</v></cols>': {},
    b'<c r="A1" s="3"></c><c r="B1"><v>9</v></c>': {},
    b'<c r="A1" s="5"><v>7</v></c>': {},
}


RUNS = {
    b"<is><r><t>a</t></r><r><rPr><b/></rPr><t xml:space='preserve'> b</t></r></is>": b"<is><t>a b</t></is>",
    b"<x:is><x:r><x:t/></x:r><x:r><x:t>a</x:t></x:r><x:rPh/></x:is>": b"<is><t>a</t></is>",
    b"<is><t>a</t></is>": b"<is><t>a</t></is>",
    b"<is/><is></is>": b"<is/><is></is>",
    b"<is><r><t>a</t></r>" * REPEATED: b"<is><r><t>a</t></r>" * REPEATED,
    b"<is><r>" * REPEATED + b"</r>": b"<is><r>" * REPEATED + b"</r>",
    b"<is><r><t>" + b"</r>" * REPEATED: b"<is><r><t>" + b"</r>" * REPEATED,
}
"""Texts in cells, and the same as one run."""


def workbook(sheet: bytes, style_sheet: bytes = EMPTY, book: bytes = b"<workbook/>") -> io.BytesIO:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in {styles.MEMBER: style_sheet, styles.BOOK_MEMBER: book, SHEET: sheet}.items():
            packed.writestr(name, text)
    return content


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_without_results_are_counted(text: bytes) -> None:
    """An empty text is a result."""
    with zipfile.ZipFile(workbook(text * 3)) as book:
        assert cells.scan(book) == (3 * FORMULAS[text], 0, 0)


@pytest.mark.parametrize("cell", [b"<c><f>1+1</f></c>", b"<c\nr='A1'><f>1+1</f></c>", b"<c\tr='A1'><f>1+1</f></c>"])
def test_no_cell_is_cut(cell: bytes) -> None:
    """Sheets are read in pieces: wherever one ends, every cell is found, however its tag goes on."""
    with zipfile.ZipFile(workbook(cell * REPEATED)) as book:
        assert cells.scan(book) == (REPEATED, 0, 0)


@pytest.mark.parametrize("text", TEXTS)
def test_cells_whose_type_the_driver_ignores_become_texts(text: bytes) -> None:
    """Each of them, wherever the pieces end in which sheets are read."""
    count = min(REPEATED // 10, 5 * cells.CHUNK // (2 * len(text)))
    expected = {SHEET: dict.fromkeys(TYPE.findall(text), count)} if TEXTS[text] else {}
    with zipfile.ZipFile(workbook(text * count)) as book:
        assert cells.mistaken(book) == expected
        assert b"".join(cells.with_texts(book, SHEET)) == (TEXTS[text] or text) * count


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_parts_in_utf_16_are_read(tmp_path: Path, encoding: str) -> None:
    """With a mark or without, as the driver reads them; the styles that are made plain are in UTF-8."""
    parts = {
        SHEET: "<row>" + '<c s="0"><f>1</f></c><c s="0"><v>2</v></c><c><v>_x000D_\u017d</v></c>' * 20_000 + "</row>",
        styles.BOOK_MEMBER: '<workbook><workbookPr date1904="1"/></workbook>',
        styles.MEMBER: "<styleSheet><numFmt numFmtId='164' formatCode='d/m'/><cellXfs><xf numFmtId='164'/></cellXfs>",
    }
    source, plain = tmp_path / "a.xlsx", tmp_path / "plain.xlsx"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name, ('<?xml version="1.0" encoding="UTF-16"?>' + text).encode(encoding))
    assert styles.main(str(source), str(plain)) == {
        "uncalculated": 20_000,
        "escaped": 20_000,
        "truths": 0,
        "late": 0,
        "named": 20_000,
        "iso": 0,
        "errors": 0,
        "first_errors": 0,
        "phonetic": 0,
        "rounded": 0,
        "first_rounded": 0,
        "merged": 0,
        "first_merged": 0,
    }
    with zipfile.ZipFile(plain) as packed:
        assert packed.read(styles.MEMBER).decode() == parts[styles.MEMBER].replace("d/m", "YYYY-MM-DD")


@pytest.mark.parametrize("crafted", [b"<c <f", b"<c><f ", b"<c><f>", b"<c t='s", b"<c><f></f> "])
def test_tags_that_do_not_end_are_passed_once(crafted: bytes) -> None:
    """The formula after them is found."""
    with zipfile.ZipFile(workbook(crafted * REPEATED + b"<c><f>1</f></c>")) as book:
        assert cells.scan(book) == (1, 0, 0)


@pytest.mark.parametrize(
    "crafted", [b"<c ", b"<c t='d'", b" t='d'", b"<c t=", b"<c t", b"'d'<c t='d", b"<rPh><t>", b"<rPh "]
)
def test_types_that_do_not_end_are_passed_once(crafted: bytes) -> None:
    """The one after them is found."""
    with zipfile.ZipFile(workbook(b"<c " + crafted * REPEATED + b"<c t='d'><v>2024-01-02</v></c>")) as book:
        assert cells.mistaken(book) == {SHEET: {b"d": 1}}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_are_found_in_cells_of_the_formats_asked_for(text: bytes) -> None:
    """Whatever the prefix of their elements, after formulas too; texts are none."""
    with zipfile.ZipFile(workbook(text)) as book:
        assert styles._largest(book, {3: 1e9, 4: 1e9}) == NUMBERS[text]


@pytest.mark.parametrize("crafted", [b'<c s="3">', b"<c s='3'><f>", b"<c <f", b'<c s="3"><f></f> ', b"<c a:s"])
def test_cells_without_ends_are_passed_once(crafted: bytes) -> None:
    """The number after them is found."""
    with zipfile.ZipFile(workbook(crafted * REPEATED + b'</row><c s="3"><v>5</v></c>')) as book:
        assert styles._largest(book, {3: 1e9}) == {3: 5.0}


def test_a_format_is_left_when_its_numbers_do_not_matter_any_more() -> None:
    """A number of a whole day decides."""
    text = b'<c s="1"><v>2</v></c><c s="1"><v>9</v></c><c s="2"><v>0</v></c><c s="3"><v>7</v></c><c s="4"><v>8</v></c>'
    wanted = {1: styles.DAY_ONE, 2: styles.DAY_ONE, 4: styles.DAY_ONE}
    with zipfile.ZipFile(workbook(text)) as book:
        assert styles._largest(book, wanted) == {1: 2.0, 2: 0.0, 4: 8.0}
        assert styles._largest(book, {}) == {}


def test_a_sheet_is_not_read_on_when_all_is_known() -> None:
    """Its damaged rest is not reached."""
    content = workbook(b'<row><c s="1"><v>2</v></c></row>' * 100_000)
    damaged = content.getvalue()[:-4000] + bytes(3000) + content.getvalue()[-1000:]
    with zipfile.ZipFile(io.BytesIO(damaged)) as book:
        assert styles._largest(book, {1: styles.DAY_ONE}) == {1: 2.0}
        with pytest.raises(styles.UNREADABLE):
            styles._largest(book, {2: styles.DAY_ONE})


DAYS = {
    b"<c s='1'><v>2</v></c>": b"<c s='1'><v>1464</v></c>",
    b'<c s = "3"><f>A2</f>\n<v> -0.5 </v></c>': b'<c s = "3"><f>A2</f>\n<v> 1461.5 </v></c>',
    b"<c s='1' t='n'><v>43831.520833333336</v></c>": b"<c s='1' t='n'><v>45293.520833333336</v></c>",
    b"<c s='1'><v>4.3831E4</v></c>": b"<c s='1'><v>45293</v></c>",
    b"<c s='2'><v>2</v></c>": b"",
    b"<c><v>2</v></c>": b"",
    b"<c s='1' t='s'><v>2</v></c>": b"",
    b"<c s='1' t='b'><v>1</v></c>": b"",
    b"<c s='1'/><c s='1'><v/></c>": b"",
    b"<c s='1'><v>2 days</v></c>": b"",
}
"""Cells of a sheet that counts days from 1904, and what becomes of those with dates; nothing of others."""


@pytest.mark.parametrize("text", DAYS)
def test_dates_that_are_counted_from_1904_are_counted_from_1900(text: bytes) -> None:
    """Those in cells with the formats of dates, here 1 and 3."""
    assert b"".join(styles._since_1900([text * 3, text], {1, 3})) == (DAYS[text] or text) * 4


@pytest.mark.parametrize("crafted", [b'<c s="3">', b"<c s='3'><f>", b"<c <f", b'<c s="3"><f></f> ', b"<c s='3'><v>"])
def test_dates_without_ends_are_passed_once(crafted: bytes) -> None:
    """The one after them is found."""
    text = crafted * REPEATED
    assert b"".join(styles._since_1900([text + b'</row><c s="3"><v>5</v></c>'], {3})).endswith(b"<v>1467</v></c>")


@pytest.mark.parametrize("crafted", [b"<cellXfs ", b"<xf ", b"<numFmt ", b"<numFmt formatCode='", b"</cellXfs "])
def test_formats_that_do_not_end_are_passed_once(tmp_path: Path, crafted: bytes) -> None:
    """The sheet is looked at all the same."""
    style_sheet = b"<styleSheet><cellXfs><xf numFmtId='34'/>" + crafted * REPEATED
    source = tmp_path / "a.xlsx"
    source.write_bytes(workbook(b"<c><f>1</f></c>", style_sheet).getvalue())
    assert styles.main(str(source), str(tmp_path / "plain.xlsx")) == {
        "uncalculated": 1,
        "escaped": 0,
        "truths": 0,
        "iso": 0,
        "errors": 0,
        "first_errors": 0,
        "phonetic": 0,
        "rounded": 0,
        "first_rounded": 0,
        "merged": 0,
        "first_merged": 0,
    }


@pytest.mark.parametrize(
    ("rows", "first"),
    [
        (b"<row/><row><c t='e'><v>#N/A</v></c></row><row><c t='e'><v>#N/A</v></c></row>", 2),
        (b"<x:row r='7'><x:c t='n'><x:v>1</x:v></x:c></x:row><x:row><x:c r='A8' t=\"e\"><x:v>a</x:v></x:c></x:row>", 8),
        (b"<row r='3'><c t='e'/><c t='str'><v>a</v></c></row><row r='9'><c t='d'><v>2024</v></c></row>", 0),
        (b"<row><c><v>1</v></c></row>" * REPEATED + b"<row><c t='e'><v>#N/A</v></c></row>", REPEATED + 1),
        (b"<row " * REPEATED + b"<c t='e'><v>#N/A</v></c>", 0),
    ],
    ids=["read", "prefixed", "other types", "late", "no end"],
)
def test_the_row_of_the_first_error_is_found(rows: bytes, first: int) -> None:
    """Rows need not say where they are, and cells without content have no error."""
    with zipfile.ZipFile(workbook(rows)) as book:
        assert cells.first_error(book, cells.mistaken(book)) == first


@pytest.mark.parametrize(
    ("code", "digits"),
    [
        ("00000", range(1, 5)),
        ("00000\\-0000", range(1, 9)),
        ("&quot;No. &quot;00;-00", range(1, 2)),
        ("[$-409](000) 000", range(1, 6)),
        ("0", range(1, 1)),
        ("General", range(1, 0)),
        ("00.0", range(1, 0)),
        ("#,##0", range(1, 0)),
        ("00%", range(1, 0)),
        (1, range(1, 0)),
    ],
)
def test_formats_may_show_zeros_before_whole_numbers(code: str | int, digits: range) -> None:
    """Those that show digits and signs between them alone, such as postal codes."""
    assert styles.padded_by(code) == digits


@pytest.mark.parametrize(("text", "whole"), RUNS.items(), ids=range(len(RUNS)))
def test_the_runs_of_a_text_become_one(text: bytes, whole: bytes) -> None:
    """The driver reads the first one; what only looks like a text stays as it is."""
    with zipfile.ZipFile(workbook(text)) as book:
        assert b"".join(cells.with_texts(book, SHEET)) == whole
        assert (SHEET in cells.mistaken(book)) == (text != whole)


PREFIXED = b"<?xml version='1.0'?>\n<!-- <a:b> --><x:sheet xmlns:x='a'><y:a x:r='1'/><x:b>x:</x:b></x:sheet>"


@pytest.mark.parametrize("size", range(1, 12))
def test_prefixes_of_elements_are_left_out_wherever_pieces_end(size: int) -> None:
    """Other elements, attributes and texts stay as they are."""
    content = (PREFIXED[at : at + size] for at in range(0, len(PREFIXED), size))
    left = PREFIXED.replace(b"<x:", b"<").replace(b"</x:", b"</")
    assert b"".join(cells._without(b"x:", content)) == left
    with zipfile.ZipFile(workbook(PREFIXED)) as book:
        assert b"".join(cells.pieces(book, SHEET)) == left


@pytest.mark.parametrize("crafted", [b"<!--", b"<!-- -", b"<?", b"<? ?", b"<", b" ", b"<!-- --> <? ?>", b"<x", b"<x:"])
def test_beginnings_without_an_element_are_passed_once(crafted: bytes) -> None:
    with zipfile.ZipFile(workbook(crafted * REPEATED)) as book:
        assert cells.is_prefixed(book, SHEET) == (crafted == b"<x:")
        assert len(b"".join(cells.pieces(book, SHEET))) >= REPEATED
