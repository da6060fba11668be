"""The largest files of formats that need memory: `python -m bench.parts.sizes [KIND …]`.

The engine runs as in the service, in the sandbox with every isolation layer that the host supports and the limits of
the settings. Each kind of file is converted in growing sizes, and errors are printed as a caller receives them.
"""

import argparse
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import anyio
import msgspec

from bench.measure.meter import load_average
from bench.parts.targets import convert, open_engine
from sandbox.command import Limits
from service.formats.registry import find_output
from service.settings import Settings

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
    """Write a spreadsheet of one sheet."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", _ODS_TYPE)
        with archive.open("content.xml", "w", force_zip64=True) as content:
            content.write(f"<office:document-content {_ODS_NAMES}><office:body><office:spreadsheet>".encode())
            content.write(b'<table:table table:name="places">')
            for row in rows(count, columns):
                content.write(f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>".encode())
            content.write(b"</table:table></office:spreadsheet></office:body></office:document-content>")


def _ods_cell(text: str) -> str:
    number = text.lstrip("-").isdigit()
    kind = f'"float" office:value="{text}"' if number else '"string"'
    return f"<table:table-cell office:value-type={kind}><text:p>{text}</text:p></table:table-cell>"


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


class FileKind(msgspec.Struct, frozen=True):
    """A kind of file, the sizes to try, and the target."""

    write: Callable[[Path, int, int], None]
    extension: str
    target: str
    sizes: Sequence[tuple[int, int]]
    """Rows and columns, or features and types."""


KINDS = {
    "XLSX, read": FileKind(write_xlsx, "xlsx", "GeoPackage", [(100_000, 10), (1_000_000, 10), (1_000_000, 45)]),
    "ODS, read": FileKind(write_ods, "ods", "GeoPackage", [(50_000, 10), (60_000, 10), (75_000, 10), (100_000, 10)]),
    "XLSX, written": FileKind(write_csv, "csv", "Xlsx", [(100_000, 10), (1_000_000, 13), (500_000, 60)]),
    "ODS, written": FileKind(write_csv, "csv", "Ods", [(100_000, 10), (1_000_000, 13), (500_000, 60)]),
    "GML of many types": FileKind(write_gml, "gml", "GeoPackage", [(400_000, 1), (400_000, 100), (400_000, 300)]),
    "GML of many types, in turn": FileKind(
        write_interleaved_gml, "gml", "GeoPackage", [(100_000, 10), (400_000, 10), (100_000, 100), (400_000, 100)]
    ),
    "GML of many types, to KML": FileKind(write_gml, "gml", "Kml", [(400_000, 100), (400_000, 1000)]),
}


async def main(names: Sequence[str]) -> None:
    """Convert files of each kind in growing sizes."""
    settings = Settings()
    limits = Limits(wall_seconds=settings.conversion_seconds, memory_bytes=settings.conversion_memory_bytes)
    async with open_engine(limits) as (engine, pool, work):
        for name in names:
            kind = KINDS[name]
            for size in kind.sizes:
                path = work / f"large.{kind.extension}"
                await anyio.to_thread.run_sync(kind.write, path, *size)
                outcome = await convert(engine, pool, path, find_output(kind.target), source_epsg=4326)
                sized = f"{size[0]:9,} x {size[1]:<5,} {path.stat().st_size / 1e6:6.1f} MB"
                print(f"{name:32} {sized} {outcome}", flush=True)
                path.unlink()
    print(f"load average {load_average()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=", ".join(KINDS))
    anyio.run(main, parser.parse_args(sys.argv[1:]).kinds)
