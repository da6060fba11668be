"""XLSX and ODS: entities, bombs, cells at the last row and column; formulas that CSV injects."""

import zlib
from collections.abc import Callable, Mapping

from tests.hostile.bait import Bait
from tests.hostile.case import LIMIT, REFUSED, Case, constant, filled, made
from tests.hostile.markup import ENTITIES, LAUGHS
from tests.hostile.packing import Entry, assembled, bomb, packed

DECLARED = '<?xml version="1.0" encoding="UTF-8"?>'
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
ROWS = '<row r="1"><c r="A1" t="inlineStr"><is><t>name</t></is></c></row><row r="2"><c r="A2"><v>{}</v></c></row>'
CELL = '<table:table-cell office:value-type="string"{}><text:p>{}</text:p></table:table-cell>'
ODS_NAMES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
)
MIMETYPE = b"application/vnd.oasis.opendocument.spreadsheet"
BRACKETS = "(" * 50_000 + "1" + ")" * 50_000
ENDLESS = ' table:number-columns-repeated="2000000000"'
SPREAD = ' table:number-columns-repeated="16384"'


def _sheet(rows: str) -> str:
    return f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def _workbook(parts: Mapping[str, str], sheets: int = 1) -> dict[str, bytes]:
    listed = "".join(f'<sheet name="s{n}" sheetId="{n}" r:id="r{n}"/>' for n in range(1, sheets + 1))
    related = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        for n in range(1, sheets + 1)
    )
    texts = {
        "[Content_Types].xml": f'{DECLARED}<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" '
        'ContentType="application/xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{TYPE}.worksheet+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{TYPE}.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{related}</Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"/>',
        "xl/worksheets/sheet1.xml": _sheet(ROWS.format(1)),
        **parts,
    }
    return {name: content.encode() for name, content in texts.items()}


def xlsx(parts: Mapping[str, str], sheets: int = 1) -> Callable[[Bait], bytes]:
    """Build a workbook with `parts` replaced, and with bait in them."""
    return lambda bait: packed(_workbook({name: filled(part, bait) for name, part in parts.items()}, sheets))


def ods(rows: str, before: str = "") -> Callable[[Bait], bytes]:
    """Build a spreadsheet with one table."""
    return lambda bait: packed({"mimetype": MIMETYPE, "content.xml": filled(_content(rows, before), bait).encode()})


def _content(rows: str, before: str = "") -> str:
    return (
        f'<?xml version="1.0"?>{before}<office:document-content {ODS_NAMES}><office:body><office:spreadsheet>'
        f'<table:table table:name="s">{rows}</table:table></office:spreadsheet></office:body></office:document-content>'
    )


def _row(*cells: str, spread: str = "") -> str:
    return f"<table:table-row{spread}>{''.join(CELL.format('', cell) for cell in cells)}</table:table-row>"


def _blown_up(part: str, head: str, tail: str, mebibytes: int) -> bytes:
    members = {name: content for name, content in _workbook({}).items() if name != part}
    rest = [
        Entry(name.encode(), content, method=0, size=len(content), crc=_crc(content))
        for name, content in members.items()
    ]
    return assembled([*rest, bomb(part, mebibytes, head.encode(), tail.encode())])


def _crc(content: bytes) -> int:
    return zlib.crc32(content)


SHEET = "xl/worksheets/sheet1.xml"
ERROR_CELL = '<c r="A1" t="e"><v>#N/A</v></c>'
STRINGS = "xl/sharedStrings.xml"
FORMULAS = "name,value\n" + "\n".join(
    f'x,"{formula}"'
    for formula in (
        "=cmd|'/c calc'!A1",
        "of:=WEBSERVICE(&quot;http://127.0.0.1&quot;)",
        "of:=1+1",
        "+1+1",
        "-1+1",
        "@SUM(1)",
        "\t=1+1",
        "=HYPERLINK(0)",
        "oooc:=1+1",
        "msoxl:=1+1",
        " of:=1+1",
        "OF:=1+1",
    )
)

CASES = {
    **{
        f"XLSX with an entity of {name}": Case("a.xlsx", xlsx({SHEET: entity + _sheet(ROWS.format("&x;"))}))
        for name, entity in ENTITIES.items()
    },
    **{
        f"ODS with an entity of {name}": Case("a.ods", ods(_row("a") + _row("&x;"), entity))
        for name, entity in ENTITIES.items()
    },
    "XLSX with billion laughs": Case("a.xlsx", xlsx({SHEET: LAUGHS + _sheet(ROWS.format("&x;"))}), REFUSED),
    "XLSX with billion laughs in its texts": Case(
        "a.xlsx", xlsx({STRINGS: f'{LAUGHS}<sst xmlns="{MAIN}"><si><t>&x;</t></si></sst>'})
    ),
    "ODS with billion laughs": Case("a.ods", ods(_row("a") + _row("&x;"), LAUGHS), REFUSED),
    "XLSX with sheets elsewhere": Case(
        "a.xlsx",
        xlsx(
            {
                "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
                f'Type="{OFFICE}/worksheet" Target="../../../../..{{csv}}" TargetMode="External"/></Relationships>'
            }
        ),
    ),
    "XLSX of blanks": Case(
        "a.xlsx",
        made(lambda: _blown_up(SHEET, f'<worksheet xmlns="{MAIN}"><sheetData>', "</sheetData></worksheet>", 400)),
    ),
    "XLSX of one long text": Case(
        "a.xlsx", made(lambda: _blown_up(STRINGS, f'<sst xmlns="{MAIN}"><si><t>', "</t></si></sst>", 400))
    ),
    "XLSX with a cell at the end": Case(
        "a.xlsx", xlsx({SHEET: _sheet('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')})
    ),
    "XLSX with a cell beyond the end": Case(
        "a.xlsx",
        xlsx(
            {
                SHEET: _sheet(
                    '<row r="4294967295"><c r="ZZZZZZZ4294967295"><v>1</v></c></row><row r="-5"><c r="99"/></row>'
                )
            }
        ),
    ),
    "XLSX with texts that are not there": Case(
        "a.xlsx", xlsx({SHEET: _sheet('<row r="1"><c r="A1" t="s"><v>-99999999</v></c></row>')})
    ),
    "XLSX whose first part begins before it": Case(
        "a.xlsx", lambda bait: xlsx({SHEET: _sheet(f'<row r="1">{ERROR_CELL}</row>')})(bait)[40:], REFUSED
    ),
    "XLSX of 1,100 sheets": Case("a.xlsx", xlsx({}, sheets=1100), LIMIT, {"outputFormat": "GeoPackage"}),
    "XLSX called as other files": Case(
        "a.xlsx",
        xlsx(
            {
                "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
                '<sheet name="../../{slip}" sheetId="1" r:id="r1"/></sheets></workbook>'
            }
        ),
        "",
        {"outputFormat": "Csv"},
    ),
    "ODS of endless rows": Case("a.ods", ods(_row("a", spread=' table:number-rows-repeated="2000000000"'))),
    "ODS of endless columns": Case(
        "a.ods",
        ods(f"<table:table-row>{CELL.format(ENDLESS, 'a')}</table:table-row>"),
    ),
    "ODS of a full sheet": Case(
        "a.ods",
        ods(f'<table:table-row table:number-rows-repeated="1048576">{CELL.format(SPREAD, "a")}</table:table-row>'),
        REFUSED,
    ),
    "ODS of formulas that need each other": Case(
        "a.ods",
        ods("<table:table-row>" + '<table:table-cell table:formula="of:=[.B1]+[.A1]"/>' * 2 + "</table:table-row>"),
    ),
    "ODS of formulas in brackets": Case(
        "a.ods",
        ods(_row("a") + f'<table:table-row><table:table-cell table:formula="of:={BRACKETS}"/></table:table-row>'),
    ),
    "formulas into ODS": Case("a.csv", constant(FORMULAS), "", {"outputFormat": "Ods"}, absent=b"table:formula"),
    "formulas into XLSX": Case("a.csv", constant(FORMULAS), "", {"outputFormat": "Xlsx"}, absent=b"<f>"),
}
