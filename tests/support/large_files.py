"""Large files in formats whose readers or writers need memory or time: tables, workbooks, GML of many types, GPX."""

import gzip
import random
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{}</Types>'
_RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_XLSX = {
    "[Content_Types].xml": _TYPES.format(
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_SHEETS}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_SHEETS}.worksheet+xml"/>'
    ),
    "_rels/.rels": _RELATIONS.format(
        f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    ),
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
    '<sheets><sheet name="places" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": _RELATIONS.format(
        f'<Relationship Id="r1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    ),
}
_ODS_TYPE = "application/vnd.oasis.opendocument.spreadsheet"
_ODS_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)
_GML = (
    '<gml:featureMember><d:{kind} gml:id="{kind}.{n}"><d:at><gml:Point gml:id="p.{kind}.{n}" '
    'srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>{y} {x}</gml:pos></gml:Point></d:at>'
    "<d:name>place number {n}</d:name><d:height>{n}.5</d:height></d:{kind}></gml:featureMember>\n"
)
_HELD = b"<extensions><a><b>1</b></a></extensions>"
_PART_BYTES, _PARTS = 32 << 20, 24


@cache
def crafted_gpx() -> bytes:
    """Return a .gpx.gz of some megabytes that would be unpacked and looked through for minutes."""
    other = b"<!--%b-->" % random.Random(0).randbytes(100_000).hex().encode()
    part = gzip.compress(other + _HELD * (_PART_BYTES // len(_HELD)), 1)
    return gzip.compress(b'<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">') + part * _PARTS


def rows(count: int, columns: int) -> Iterator[list[str]]:
    """Yield a header and rows: two coordinates, then alternating texts and numbers."""
    yield ["x", "y", *(f"c{number}" for number in range(columns - 2))]
    for row in range(count):
        rest = (f"text {row % 1000}" if number % 2 else str(row + number) for number in range(columns - 2))
        yield [str(row % 360 - 180), str(row % 170 - 85), *rest]


def write_csv(path: Path, count: int, columns: int) -> None:
    """Write a table as CSV."""
    with path.open("w", encoding="ascii") as file:
        file.writelines(",".join(row) + "\n" for row in rows(count, columns))


def write_xlsx(path: Path, count: int, columns: int) -> None:
    """Write a workbook of one sheet."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _XLSX.items():
            archive.writestr(name, content)
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            sheet.write(f'<worksheet xmlns="{_MAIN}"><sheetData>'.encode())
            for number, row in enumerate(rows(count, columns), 1):
                sheet.write(f'<row r="{number}">{"".join(map(_cell, row))}</row>'.encode())
            sheet.write(b"</sheetData></worksheet>")


def _cell(text: str) -> str:
    if text.lstrip("-").isdigit():
        return f"<c><v>{text}</v></c>"
    return f'<c t="inlineStr"><is><t>{text}</t></is></c>'


def write_ods(path: Path, count: int, columns: int) -> None:
    """Write a spreadsheet of one sheet, with a thousand letters in each cell."""
    cell = f'<table:table-cell office:value-type="string"><text:p>{"text" * 250}</text:p></table:table-cell>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", _ODS_TYPE)
        with archive.open("content.xml", "w", force_zip64=True) as content:
            content.write(f"<office:document-content {_ODS_NAMES}><office:body><office:spreadsheet>".encode())
            content.write(b'<table:table table:name="places">')
            for _ in range(count):
                content.write(f"<table:table-row>{cell * columns}</table:table-row>".encode())
            content.write(b"</table:table></office:spreadsheet></office:body></office:document-content>")


def write_gml(path: Path, count: int, types: int) -> None:
    """Write features of many types, one type after another."""
    _write_gml(path, ((f"t{kind}", n) for kind in range(types) for n in range(count // types)))


def write_interleaved_gml(path: Path, count: int, types: int) -> None:
    """Write features of many types that alternate."""
    _write_gml(path, ((f"t{n % types}", n) for n in range(count)))


def _write_gml(path: Path, features: Iterable[tuple[str, int]]) -> None:
    with path.open("w", encoding="ascii") as file:
        file.write('<d:all xmlns:d="http://example.com/d" xmlns:gml="http://www.opengis.net/gml/3.2">\n')
        file.writelines(_GML.format(kind=kind, n=n, x=n % 360 - 180, y=n % 170 - 85) for kind, n in features)
        file.write("</d:all>\n")
