"""Finds in workbooks that spreadsheet programs open why the driver finds or reads no content of them."""

import posixpath
import re
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from itertools import chain, islice
from urllib.parse import unquote

from service.errors import Rejection
from service.formats.archive import Archive
from service.formats.format import Format, reading_of
from service.formats.names import shown

MOST_BYTES = 1 << 20
"""How much of a list of parts is read."""
TYPES = "[Content_Types].xml"
ENTRY = re.compile(rb"<(?:\w{1,20}:)?(?:Override|Relationship)\s[^<>]*+>")
MAIN = re.compile(rb"\sContentType\s*=\s*[\"'][^\"'<>]*sheet(?:\.macroEnabled)?\.main\+xml[\"']")
SHEET = re.compile(rb"\sType\s*=\s*[\"'][^\"'<>]*/worksheet[\"']")
NAME = re.compile(rb"\s(?:PartName|Target)\s*=\s*[\"']([^\"'<>]*)[\"']")
LINK = re.compile(rb"<(?:[\w.-]{1,40}:)?sheet\s(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*+>")
"""What the main part says of a sheet. Names may hold `>`."""
LINKED = re.compile(rb"\s[\w.-]{1,40}:id\s*=")
SHEETS = re.compile(r"xl/worksheets/[^/]+\.xml", re.IGNORECASE)
MOST_SHEETS = 20
"""How many sheets are looked at for cells whose texts are missing."""
MANIFEST = "META-INF/manifest.xml"
KEY = re.compile(rb"<(?:\w{1,20}:)?encryption-data\b")
"""What the list of parts of ODS has for each part that is encrypted."""
TEXTS = "xl/sharedStrings.xml"
SHARED = re.compile(rb"<(?:[\w.-]{1,40}:)?c\s[^<>]*\bt\s*=\s*[\"']s[\"']")
"""A cell with the number of a text."""
ENCRYPTED = "The workbook is encrypted. Save it without a password and send it again."
SAVE = "Open it in a spreadsheet program, save it as .xlsx, and send it again."
ELSEWHERE = "The workbook has its main part in {!r}, but it can only be read from {}. " + SAVE
NO_SHEET = (
    "The workbook names the file of a sheet {!r}, but has no file of exactly this name, so it cannot be read. " + SAVE
)
UNLINKED = "The workbook refers to its sheets by attributes other than id, so they cannot be read. " + SAVE
NO_TEXTS = "The workbook lacks {!r}, the texts of its cells, so only numbers would be read. " + SAVE


def why_unread(row: Format, archive: Archive) -> str:
    """Why the driver of the format `row` would find nothing in the workbook in `archive`; "" if it would. Blocking.

    Nothing of what is damaged: the driver reports that.
    """
    main = reading_of(row).main_part
    with suppress(Rejection):
        return next(chain(_encrypted(archive), _unread(archive, main) if main else ()), "")
    return ""


def _encrypted(archive: Archive) -> Iterator[str]:
    for member in archive.members:
        if member.path == MANIFEST and KEY.search(archive.head(member, MOST_BYTES)):
            yield ENCRYPTED


def _unread(archive: Archive, main: str) -> Iterator[str]:
    parts = {member.path for member in archive.members}
    for target in _listed(archive, TYPES, MAIN, ""):
        if main not in parts:
            yield ELSEWHERE.format(shown(target), main)
    folder, name = posixpath.split(main)
    for target in _listed(archive, f"{folder}/_rels/{name}.rels", SHEET, folder):
        if target not in parts:
            yield NO_SHEET.format(shown(target))
    if any(not LINKED.search(link) for link in LINK.findall(_head(archive, main))):
        yield UNLINKED
    if TEXTS not in parts:
        sheets = (member for member in archive.members if SHEETS.fullmatch(member.path))
        if any(SHARED.search(archive.head(sheet, MOST_BYTES)) for sheet in islice(sheets, MOST_SHEETS)):
            yield NO_TEXTS.format(TEXTS)


def _listed(archive: Archive, part: str, kind: re.Pattern[bytes], folder: str) -> Iterator[str]:
    """The parts of a kind that `part` lists, which are in `folder` unless it says otherwise."""
    for entry in ENTRY.findall(_head(archive, part)):
        name = NAME.search(entry)
        if name and kind.search(entry):
            named = unquote(unescape(name[1].decode("utf-8", "replace")))
            yield posixpath.normpath(posixpath.join("/", folder, named)).lstrip("/")


def _head(archive: Archive, part: str) -> bytes:
    """What is read of `part`; nothing if there is none."""
    found = next((member for member in archive.members if member.path == part), None)
    return archive.head(found, MOST_BYTES) if found is not None else b""
