"""Workbooks that spreadsheet programs open, but whose content the driver does not find."""

import re
import zipfile
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest

from service.errors import Rejection
from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

SHEET, RELATIONS = "xl/worksheets/sheet1.xml", "xl/_rels/workbook.xml.rels"
Change = Callable[[str, bytes], tuple[str, bytes]]
UNREAD: dict[str, tuple[Change, str]] = {
    "a main part of another name": (
        lambda name, text: (
            name.replace("workbook.xml", "workbook2.xml"),
            text.replace(b"xl/workbook.xml", b"xl/workbook2.xml"),
        ),
        r"has its main part in 'xl/workbook2.xml', but it can only be read from xl/workbook.xml\. Open it",
    ),
    "a sheet in other letters": (
        lambda name, text: (name.replace(SHEET, "xl/worksheets/Sheet1.xml"), text),
        f"The workbook names the file of a sheet '{SHEET}', but has no file of exactly this name",
    ),
    "no texts": (
        lambda name, text: (name.replace("sharedStrings", "texts"), text),
        "lacks 'xl/sharedStrings.xml', the texts of its cells",
    ),
    "sheets that other attributes refer to": (
        lambda name, text: (name, text.replace(b" r:id=", b" r:part=")),
        r"refers to its sheets by attributes other than id, so they cannot be read\. Open it",
    ),
}
"""What becomes of each part, and the words of the refusal."""


def _prefixed(text: bytes) -> bytes:
    """`text` with a prefix before the names of its elements, as .NET's Open XML SDK writes them."""
    return re.sub(rb"(</?)(?=\w)", rb"\1x:", text).replace(b"xmlns=", b"xmlns:x=")


STRICT = {
    b"http://schemas.openxmlformats.org/officeDocument/2006/": b"http://purl.oclc.org/ooxml/officeDocument/",
    b"http://schemas.openxmlformats.org/spreadsheetml/2006/": b"http://purl.oclc.org/ooxml/spreadsheetml/",
}
"""What strict workbooks write."""
READ: dict[str, Change] = {
    "as written": lambda name, text: (name, text),
    "an angle bracket in the name of a sheet": lambda name, text: (name, text.replace(b'name="a"', b"name='\"a>b'")),
    "addresses from the root": lambda name, text: (
        name,
        text.replace(b'Target="worksheets', b'Target="/xl/worksheets') if name == RELATIONS else text,
    ),
    "another prefix of references": lambda name, text: (
        name,
        text.replace(b" r:id=", b"\tns:id =").replace(b":r=", b":ns=").replace(b'name="a"', b"name='\"a>b r:id=\"'"),
    ),
    "prefixes": lambda name, text: (name, _prefixed(text) if name.startswith("xl/") else text),
    "prefixes in one part": lambda name, text: (name, _prefixed(text) if name.endswith("sharedStrings.xml") else text),
    "prefixes, without formats": lambda name, text: (
        ("xl/none.xml", b"") if name == "xl/styles.xml" else (name, _prefixed(text))
    ),
    "prefixes in UTF-16": lambda name, text: (
        name,
        _prefixed(text.partition(b"?>")[2]).decode().encode("utf-16") if name.startswith("xl/") else text,
    ),
    "strict": lambda name, text: (name, reduce(lambda made, pair: made.replace(*pair), STRICT.items(), text)),
}


async def _changed(pipeline: Pipeline, folder: Path, change: Change) -> Path:
    written = (await pipeline.to("Xlsx", write_geojson(folder / "a.geojson", [point(1, 2, name="oak")]))).path
    with zipfile.ZipFile(written) as former, zipfile.ZipFile(folder / "a.xlsx", "w") as changed:
        for name in former.namelist():
            changed.writestr(*change(name, former.read(name)))
    return folder / "a.xlsx"


@pytest.mark.parametrize("name", UNREAD)
async def test_workbooks_of_which_the_driver_reads_nothing_are_refused(
    pipeline: Pipeline, tmp_path: Path, name: str
) -> None:
    """They became tables without columns and rows, without a word, or were called damaged."""
    change, told = UNREAD[name]
    path = await _changed(pipeline, tmp_path, change)
    with pytest.raises(Rejection, match=told):
        await pipeline.to("Csv", path)


@pytest.mark.parametrize("name", READ)
async def test_workbooks_with_their_parts_in_usual_places_are_read(
    pipeline: Pipeline, tmp_path: Path, name: str
) -> None:
    done = await pipeline.to("Csv", await _changed(pipeline, tmp_path, READ[name]), source_epsg=4326)
    assert [row["name"] for row in readers.table(done.path)] == ["oak"]


async def test_encrypted_sheets_are_called_so(pipeline: Pipeline, tmp_path: Path) -> None:
    """They were called damaged."""
    document = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{document}"/>'
        '<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml" manifest:size="3171">'
        '<manifest:encryption-data manifest:checksum="a"/></manifest:file-entry></manifest:manifest>'
    )
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        for name, content in {
            "mimetype": document,
            "content.xml": "\x8f\x03",
            "META-INF/manifest.xml": manifest,
        }.items():
            archive.writestr(name, content)
    with pytest.raises(Rejection, match=r"The workbook is encrypted\. Save it without a password"):
        await pipeline.to("Csv", tmp_path / "a.ods")
