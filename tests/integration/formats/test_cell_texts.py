"""Texts in the cells of workbooks, and what is written beside them."""

import zipfile
from collections import Counter
from pathlib import Path

import pytest

from service.engine.jailed import opendocument
from service.engine.jailed.cell_texts import COMMENTS, plain_texts
from service.engine.workbooks import Sought
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.integration.formats.test_opendocument_times import DATE, HEAD, TAIL, text_cell, workbook
from tests.integration.formats.test_sessions import Counted
from tests.support.converters import Converters

NOTE = "<office:annotation><dc:creator xmlns:dc='d'>me</dc:creator><text:p>a<text:s/>note</text:p></office:annotation>"
TEXT = 'office:value-type="string"'
TEXTS = {
    'a<text:s text:c="3"/>b<text:s/>c': "a   b c",
    "a<text:tab/>b": "a\tb",
    "a<text:line-break></text:line-break>b": "a\nb",
    '<text:span text:style-name="T1">a<text:span>b</text:span></text:span>c': "abc",
    "a</text:p><text:p>b": "a\nb",
}
"""Content of paragraphs, as LibreOffice writes it, and what it says."""


async def test_spaces_tabs_and_line_ends_in_texts_of_cells_are_kept(either: Pipeline, tmp_path: Path) -> None:
    """Words on both sides of them became one, without a warning."""
    rows = [[text_cell(f"r{number}"), text_cell(content)] for number, content in enumerate(TEXTS)]
    source = workbook(tmp_path / "a.ods", [text_cell("n"), text_cell("t")], *rows)
    done = await either.to("Csv", source)
    assert [row["t"] for row in readers.table(done.path)] == list(TEXTS.values())
    assert done.output.warnings == ()


async def test_what_cells_hold_beside_their_values_is_told(either: Pipeline, tmp_path: Path) -> None:
    """Comments do not become parts of values; links, covered values and errors are counted."""
    noted = f'<table:table-cell office:value-type="string">{NOTE}<text:p>kept</text:p></table:table-cell>'
    link = text_cell('<text:a xlink:href="http://a.example" xmlns:xlink="x">here</text:a>')
    hidden = text_cell("hidden").replace("table-cell", "covered-table-cell")
    error = text_cell("#N/A").replace("value-type", 'value-type="error" xmlns:calcext="c" office:value-type', 1)
    error = error.replace("office:value-type", "calcext:value-type", 1)
    source = workbook(tmp_path / "a.ods", [text_cell("t"), text_cell("u")], [noted, hidden], [link, error])
    done = await either.to("Csv", source)
    assert readers.table(done.path) == [{"t": "kept", "u": ""}, {"t": "here", "u": "#N/A"}]
    assert done.output.warnings == (
        "Cells that hold errors of formulas (1) are texts such as #N/A, even in columns of numbers and dates.",
        "Comments on cells (1) were left out.",
        "Values of cells that merged cells cover (1) were left out. To keep them, undo the merging of these cells.",
        "Addresses of links (1) were left out; the texts of their cells were kept.",
    )


@pytest.mark.parametrize(("rows", "told"), [("3", 1), ("1", 0)])
async def test_merged_cells_of_ods_are_told(either: Pipeline, tmp_path: Path, rows: str, told: int) -> None:
    """Labels of groups were in the first row of each, and missing in all others, without a warning."""
    first = text_cell("a").replace(" ", f' table:number-columns-spanned="1" table:number-rows-spanned="{rows}" ', 1)
    others = [["<table:covered-table-cell/>", text_cell(name)] for name in "yz"]
    source = workbook(tmp_path / "a.ods", [text_cell("g"), text_cell("n")], [first, text_cell("x")], *others)
    done = await either.to("Csv", source)
    assert [row["g"] for row in readers.table(done.path)] == ["a", "", ""]
    assert len(done.output.warnings) == told
    assert all(warning.startswith("Merged cells (1) have their value in the first") for warning in done.output.warnings)


async def test_what_an_ods_workbook_hides_is_told(either: Pipeline, tmp_path: Path) -> None:
    """Sheets, columns and rows with values, which the driver reads like all others; others are no loss."""
    cells = [[text_cell("a"), text_cell("b")], [text_cell("c"), text_cell("d")]]
    plain = "<table:table-row>".join(["", *("".join(row) + "</table:table-row>" for row in cells)])
    columns = '<table:table-column/><table:table-column table:visibility="collapse" table:number-columns-repeated="9"/>'
    first, _, last = plain.rpartition("<table:table-row>")
    filtered = f'{first}<table:table-row table:visibility="filter">{last}'
    empty = '<table:table-row table:visibility="collapse"><table:table-cell/></table:table-row>'
    display = '<style:style style:name="h"><style:table-properties table:display="false"/></style:style>'
    content = HEAD.replace("<office:body>", f"{display}<office:body>").replace(
        "xmlns:text=", 'xmlns:style="s" xmlns:text='
    )
    hidden = content.replace('table:name="a"', 'table:name="a" table:style-name="h"')
    for head, rows, told in (
        (content, plain + empty, []),
        (content, filtered, ["Rows that the workbook hides, such as by a filter (1), were read"]),
        (content + columns, plain, ["Columns that the workbook hides (1) were read"]),
        (hidden, plain, ["Sheets that the workbook hides (1) were read"]),
    ):
        with zipfile.ZipFile(tmp_path / "a.ods", "w") as book:
            book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
            book.writestr(opendocument.MEMBER, head + rows + TAIL)
        done = await either.to("Csv", tmp_path / "a.ods")
        assert [row["b"] for row in readers.table(done.path)] == ["d"]
        assert [warning.partition(" like")[0] for warning in done.output.warnings] == told


BOX = (
    '<draw:g xmlns:draw="d"><draw:frame table:end-cell-address="s.B2"><draw:text-box><text:p>box</text:p>'
    "</draw:text-box></draw:frame><draw:line/><draw:g><draw:image><text:p/></draw:image></draw:g></draw:g>"
)
DRAWN = "Drawings on cells (1), such as images, were left out, with their texts."
BESIDE = {
    f"<text:p>v</text:p>{BOX}": ("v", DRAWN),
    f"{BOX}<text:p>v</text:p>": ("v", DRAWN),
    f"<text:p>v{BOX}w</text:p>": ("vw", DRAWN),
    "<text:h>v</text:h><text:p>w</text:p>": ("v\nw", ""),
    '<text:h text:outline-level="1">v</text:h>': ("v", ""),
    "<text:p>v<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>n</text:p></text:note-body>"
    "</text:note>w</text:p>": ("vw", "Comments on cells (1) were left out."),
    "<text:p><text:ruby><text:ruby-base>v</text:ruby-base><text:ruby-text>n</text:ruby-text></text:ruby></text:p>": (
        "v",
        "Phonetic guides of texts (furigana, 1) were left out.",
    ),
}
"""What a cell may hold around its text, the text, and what is told."""


@pytest.mark.parametrize("content", BESIDE)
async def test_texts_around_that_of_a_cell_are_not_joined_to_it(either: Pipeline, tmp_path: Path, content: str) -> None:
    """An image made a text end with a new line, a text in a drawing became a part of it, and headings were lost."""
    text, told = BESIDE[content]
    cell = f"<table:table-cell {TEXT}>{content}</table:table-cell>"
    source = workbook(tmp_path / "a.ods", [text_cell("t"), text_cell("u")], [cell, text_cell("x")])
    done = await either.to("Csv", source)
    assert readers.table(done.path) == [{"t": text, "u": "x"}]
    assert done.output.warnings == ((told,) if told else ())


SAID = {
    f'<table:table-cell {TEXT} office:string-value="hello"/>': "hello",
    f'<table:table-cell {TEXT} office:string-value="a &amp; b"><text:p>shown</text:p></table:table-cell>': "a & b",
    f"<table:table-cell office:string-value='say \"x\"' {TEXT} />": 'say "x"',
    f'<table:table-cell {TEXT} office:string-value="it\'s">{NOTE}</table:table-cell>': "it's",
    f'<table:table-cell {TEXT} office:string-value="of:=1+1"/>': "'of:=1+1",
    f'<table:table-cell table:formula="of:=[.A1]" {TEXT} office:string-value="a b"><text:p>a</text:p><text:p>b</text:p>'
    "</table:table-cell>": "a\nb",
    "<table:table-cell><text:p>untyped</text:p></table:table-cell>": "untyped",
    '<table:table-cell table:style-name="ce1"> <text:p text:style-name="P1">00501</text:p></table:table-cell>': "00501",
}
"""Cells as other programs write them, and what they hold."""


@pytest.mark.parametrize("cell", SAID)
async def test_texts_that_the_driver_does_not_see_are_read(either: Pipeline, tmp_path: Path, cell: str) -> None:
    """A cell says its text in its tag, or does not say that it holds one: rows of them were left out."""
    twice = cell.replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="2"')
    source = workbook(tmp_path / "a.ods", [text_cell(name) for name in "abcd"], [twice, cell, "<table:table-cell/>"])
    done = await either.to("Csv", source)
    assert list(readers.table(done.path)[0].values()) == [SAID[cell]] * 3 + [""]
    assert all("Comments" in warning or "apostrophe" in warning for warning in done.output.warnings)


async def test_texts_that_begin_like_formulas_are_not_calculated(either: Pipeline, tmp_path: Path) -> None:
    """The driver would write 2 for the first one."""
    cells = ["of:=1+1", "<text:span>of:=[.A1]</text:span>", "a of:=1", "<text:span/>b", "x</text:p><text:p>of:=1"]
    repeated = text_cell("of:=7").replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="2"')
    row = [*map(text_cell, cells), repeated, '<table:table-cell table:formula="of:=1+2" office:value-type="float"/>']
    done = await either.to("Csv", workbook(tmp_path / "a.ods", [text_cell(name) for name in "abcdefgh"], row))
    expected = ["'of:=1+1", "'of:=[.A1]", "a of:=1", "b", "x\nof:=1", "'of:=7", "'of:=7"]
    assert list(readers.table(done.path)[0].values())[:7] == expected
    (told,) = [warning for warning in done.output.warnings if "apostrophe" in warning]
    assert told.startswith("Texts that begin with of:= (4) would be calculated")


@pytest.mark.parametrize(
    ("value", "shown", "count"), [("501", "00501", 3), ("7.5", "07.5", 3), ("0", "0", 0), ("0.5", "0.50", 0)]
)
async def test_zeros_that_cells_show_before_numbers_are_told(
    either: Pipeline, tmp_path: Path, value: str, shown: str, count: int
) -> None:
    """In ODS as in XLSX; a text keeps them, as does what is below 1, and a day has none to lose."""
    said = f'office:value-type="float" office:value="{value}"'
    cells = [
        f"<table:table-cell {said}><text:p>{shown}</text:p></table:table-cell>",
        f'<table:table-cell table:number-columns-repeated="2" {said}><text:p>{shown}</text:p></table:table-cell>',
        text_cell("00501"),
        DATE.format("2024-02-01").replace(">x<", ">01.02.24<"),
    ]
    done = await either.to("Csv", workbook(tmp_path / "a.ods", [text_cell(name) for name in "abcde"], cells))
    assert list(readers.table(done.path)[0].values()) == [value] * 3 + ["00501", "2024/02/01"]
    zeros = "Zeros that formats show before numbers, as in 00501, were left out"
    told = f"{zeros} of cells ({count}). To keep the zeros, store these as texts."
    assert done.output.warnings == (told,) * (count > 0)


SHOWN = {
    "5 km": "as in 5 km",
    "$5.00": "as in 5 km",
    "5 \u20ac": "as in 5 km",
    "5\u00b0": "as in 5 km",
    "5&apos;000": "",
    "5\u00a0000,0": "",
    "1.5E+10": "",
    "-5": "",
}
"""Texts of cells with numbers, and a part of what is told."""
TYPES = {"float": "", "currency": "as in 5 km", "percentage": "Percentages (3) are fractions"}


@pytest.mark.parametrize(
    ("kind", "shown", "told"),
    [*(("float", *pair) for pair in SHOWN.items()), *((kind, "5", told) for kind, told in TYPES.items())],
)
async def test_what_cells_show_beside_numbers_is_told(
    either: Pipeline, tmp_path: Path, kind: str, shown: str, told: str
) -> None:
    """Units, currencies and percentages are in no value."""
    said = f'office:value-type="{kind}" office:value="5"'
    cells = [
        f"<table:table-cell {said}><text:p>{shown}</text:p></table:table-cell>",
        f'<table:table-cell table:number-columns-repeated="2" {said}><text:p>{shown}</text:p></table:table-cell>',
        text_cell("5 km"),
    ]
    done = await either.to("Csv", workbook(tmp_path / "a.ods", [text_cell(name) for name in "abcd"], cells))
    assert list(readers.table(done.path)[0].values()) == ["5", "5", "5", "5 km"]
    assert len(done.output.warnings) == bool(told)
    assert told in "".join(done.output.warnings)


async def test_a_workbook_with_empty_cells_that_others_cover_is_read_as_it_is(
    converters: Converters, tmp_path: Path
) -> None:
    """Only a value in one of them is a reason to look closer."""
    runs = Counted(converters.run)
    covered = '<table:covered-table-cell table:style-name="ce1"/>'
    one = '<table:table-cell office:value-type="float" office:value="1"><text:p>1</text:p></table:table-cell>'
    rows = [[text_cell("t"), text_cell("u")], [one, covered], [one, text_cell("x")]]
    source = workbook(tmp_path / "a.ods", *rows)
    done = await Pipeline(converters, runs, has_sessions=True).to("Csv", source)
    assert readers.table(done.path) == [{"t": "1", "u": ""}, {"t": "1", "u": "x"}]
    assert not any(opendocument.__name__ in command.argv for command in runs.commands)


async def test_comments_and_links_of_a_workbook_of_excel_are_told(pipeline: Pipeline, tmp_path: Path) -> None:
    """They are in parts of their own, which the driver does not read."""
    made = await pipeline.to("Xlsx", workbook(tmp_path / "a.ods", [text_cell("t")], [text_cell("v")]))
    source = tmp_path / "b.xlsx"
    source.write_bytes(made.path.read_bytes())
    link = '<Relationship Id="rId{}" Type="http://x.example/relationships/hyperlink" Target="http://a.example"/>'
    with zipfile.ZipFile(source, "a") as book:
        book.writestr("xl/comments1.xml", '<comments><commentList><comment ref="A1"/><comment ref="A2"/></commentList>')
        book.writestr("xl/worksheets/_rels/sheet1.xml.rels", f"<Relationships>{link.format(1)}</Relationships>")
    done = await pipeline.to("Csv", source)
    assert done.output.warnings == (
        "Comments on cells (2) were left out.",
        "Addresses of links (1) were left out; the texts of their cells were kept.",
    )


async def test_dates_before_march_1900_are_told_as_a_day_off(pipeline: Pipeline, tmp_path: Path) -> None:
    """Excel counts a day that February 1900 did not have."""
    table = tmp_path / "a.csv"
    table.write_text("d\n1900-02-27\n1900-03-01\n", encoding="utf-8")
    made = await pipeline.to("Xlsx", table)
    done = await pipeline.to("Csv", made.path)
    (told,) = done.output.warnings
    assert (
        told == "XLSX holds dates before March 1900, in which programs differ: Excel shows 1 value of 'd' a day later."
    )


def test_a_comment_without_an_end_stays_and_is_read_once() -> None:
    """To read it again for each comment that begins in it took hours for as many as these."""
    found: Counter[str] = Counter()
    text = b"<office:annotation><text:p>a</text:p></office:annotation>b" + b"<office:annotation>" * 1_000_000
    assert plain_texts(text, found) == text[text.index(b"b<") :]
    assert found[COMMENTS] == 1


def test_spans_before_no_formula_are_read_once() -> None:
    """A search that began anew at each would take hours."""
    part = (
        b'<table:table-cell office:value-type="string"><text:p>'
        + b"<text:span>" * 300_000
        + b"<table:table-cell><text:p" * 100_000
    )
    assert plain_texts(part, Counter()) == part


def test_values_of_a_cell_without_an_end_are_read_once() -> None:
    """A search that began anew at each would take hours."""
    part = b"<table:table-cell" + b' office:value="1"' * 200_000
    assert plain_texts(part, Counter()) == part
    assert not opendocument.is_odd(part)


@pytest.mark.parametrize(
    "tag", [b"<table:table-cell", b'<table:table-cell office:string-value="a"', b"<table:table-cell>"]
)
@pytest.mark.parametrize(
    "after", [b' office:string-value="', b" office:string-value = ", b">", b"<text:p", b"<text:p>"]
)
def test_cells_of_texts_without_an_end_are_read_once(tag: bytes, after: bytes) -> None:
    """A search that began anew at each would take hours."""
    for part in (tag + after * 60_000, (tag + after) * 60_000, tag * 60_000 + after):
        assert len(plain_texts(part, Counter())) >= len(part)
        opendocument.is_odd(part)


async def test_cells_are_seen_whole_wherever_a_piece_of_a_large_workbook_ends(converters: Converters) -> None:
    """Those across the ends of pieces made a large workbook count as odd, which took five times the time to read."""
    cell = '<table:table-cell office:value-type="float" office:value="%d.5"/>'
    row = f"<table:table-row>{cell * 3}</table:table-row>"
    rows = "".join(row % (n, n * n, n**3) for n in range(30_000))
    odd = '<table:table-row><table:table-cell office:value-type="float" office:value="1"><text:p>1 m</text:p>'
    async with converters.open_run(("ODS",)) as (held, directory):
        for behind, holds in (("", False), (odd, True)):
            with zipfile.ZipFile(directory / "a.ods", "w", zipfile.ZIP_DEFLATED) as book:
                book.writestr(opendocument.MEMBER, f'<table:table table:name="a">{rows}{behind}')
            found = await held.ask(Sought, "seek", "a.ods", opendocument.MEMBER, *opendocument.SOUGHT)
            assert (found.ok, found.holds, found.stops) == (True, holds, False)
