"""Workbooks whose dates are texts in the ISO notation, as "Strict Open XML" has them, instead of numbers of days."""

import zipfile
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline

TRANSITIONAL = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
)
STRICT = ("http://purl.oclc.org/ooxml/spreadsheetml/main", "http://purl.oclc.org/ooxml/officeDocument/relationships")
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
ROWS = """<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v></c>
<c r="D1" s="1" t="d"><v>2023-12-31</v></c></row>
<row r="2"><c r="A2"><v>1.5</v></c><c r="B2" s="1" t="d"><v>2024-01-02T03:04:05.999</v></c>
<c r="C2" s="2"><v>45293</v></c><c r="D2" s="1" t='d'><v>03:04:05</v></c></row>
<row r="3"><c r="A3"><v>2.5</v></c><c r="B3" s="1" t="d"/><c r="C3" s="2"><v>45294</v></c>
<c t="d" r="D3" s="1"><f>B2</f><v>2024-01-03</v></c></row>"""
STYLES = """<numFmts count="1"><numFmt numFmtId="164" formatCode="{}"/></numFmts><fonts count="1"><font/></fonts>
<fills count="1"><fill/></fills><borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>
<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs>"""
EXPECTED = [
    {"n": 1.5, "at": "2024-01-02T03:04:05.999", "day": "2024-01-02", "2023-12-31": "03:04:05"},
    {"n": 2.5, "at": None, "day": "2024-01-03", "2023-12-31": "2024-01-03"},
]


def write(
    path: Path,
    names: tuple[str, str] = TRANSITIONAL,
    style: str = "yyyy-mm-dd h:mm:ss",
    encoding: str = "utf-8",
    rows: str = ROWS,
) -> Path:
    """A workbook with `rows`, in which the format 1 is `style` and the format 2 a date."""
    main, office = names
    texts = "".join(f"<si><t>{text}</t></si>" for text in ("n", "at", "day"))
    related = {"styles": "styles.xml", "sharedStrings": "sharedStrings.xml", "worksheet": "worksheets/sheet1.xml"}
    listed = "".join(
        f'<Relationship Id="{kind}" Type="{office}/{kind}" Target="{target}"/>' for kind, target in related.items()
    )
    typed = "".join(
        f'<Override PartName="/xl/{target}" ContentType="{TYPE}.{kind}+xml"/>'
        for kind, target in {**related, "sheet.main": "workbook.xml"}.items()
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{typed}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{listed}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="a" sheetId="1" '
        'r:id="worksheet"/></sheets></workbook>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}">{STYLES.format(style)}</styleSheet>',
        "xl/sharedStrings.xml": f'<sst xmlns="{main}">{texts}</sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            declared = encoding if name.endswith("sheet1.xml") else "utf-8"
            book.writestr(name, f'<?xml version="1.0" encoding="{declared}"?>{content}'.encode(declared))
    return path


@pytest.mark.parametrize("names", [TRANSITIONAL, STRICT], ids=["transitional", "strict"])
@pytest.mark.parametrize("style", ["yyyy-mm-dd h:mm:ss", "d/m"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
async def test_iso_dates_are_texts(
    either: Pipeline, tmp_path: Path, names: tuple[str, str], style: str, encoding: str
) -> None:
    """Their driver takes the year for a number of days: 2024 would be a day of 1905."""
    done = await either.to("GeoJson", write(tmp_path / "a.xlsx", names, style, encoding))
    assert [found["properties"] for found in readers.geojson(done.path)] == EXPECTED
    (told,) = (warning for warning in done.output.warnings if "ISO notation" in warning)
    assert told.startswith("Dates that the workbook writes in the ISO notation (4) are texts")
