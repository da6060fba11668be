r"""Brings DXF into UTF-8, before anything reads it: its driver heeds neither the version nor all code pages.

From version AC1021 (2007) on, text is UTF-8, whatever code page the file names; before, it is in that code page, and
characters that this does not have are written as \U+XXXX, which the driver knows in MTEXT alone.
"""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from service.formats.into_utf8 import MOST_BYTES, UTF8, first_other_line, require_few, write_utf8
from service.formats.left_out import has_match
from service.formats.opened import opened

HEAD_BYTES = 64 << 10
"""Where the header is: nothing but remarks may precede it."""
VERSION = re.compile(rb"\$ACADVER[ \t]*\r?\n[ \t]*1[ \t]*\r?\nAC(\d{4})\b")
CODE_PAGE = re.compile(rb"\$DWGCODEPAGE[ \t]*\r?\n[ \t]*3[ \t]*\r?\n([\w-]{1,40})")
HEADER = re.compile(rb"\n[ \t]*2[ \t]*\r?\nHEADER\s")
OUR_HEADER = b"0\nSECTION\n2\nHEADER\n9\n$ACADVER\n1\nAC1021\n0\nENDSEC\n"
"""Without a header, the driver would take all text for ISO 8859-1."""
FIRST_IN_UTF8 = 1021
HIGH, LOW, OTHER = "[Dd][89ABab][0-9A-Fa-f]{2}", "[Dd][C-Fc-f][0-9A-Fa-f]{2}", "[0-9A-Fa-f]{4}"
ESCAPE = rf"(?<!\\)(?:\\U\+({HIGH})\\U\+({LOW})|(?!\\U\+(?:00[01]|[Dd][89A-Fa-f]))\\U\+({OTHER}))"
"""A character by its code in UTF-16, without those that a line of DXF cannot have."""
ESCAPED, MAY_BE_ESCAPED = re.compile(ESCAPE), re.compile(rb"\\U\+")
"""The second one is many times as fast, because it begins with plain text."""
ASCII, WINDOWS = "ascii", "cp1252"
CODECS: Mapping[str, str] = {
    **{f"ansi_{page}": f"cp{page}" for page in (*range(1250, 1259), 874, 932, 949, 950)},
    "ansi_936": "gb18030",
    "ansi_1361": "johab",
    **{f"dos{page}": f"cp{page}" for page in (437, 850, 852, 855, 857, 860, 861, 863, 864, 865, 866, 869, 932)},
    **{f"iso8859-{part}": f"iso8859-{part}" for part in range(1, 10)},
    "mac-roman": "mac-roman",
}
"""Python's names for the code pages that files name, in lower case."""


def dxf_in_utf8(path: Path, target: Path, all_bytes: int) -> tuple[Path, str]:
    """The file to read in place of the DXF at `path`, and a warning or "": as `xml_encodings.in_utf8`. Blocking.

    Raises:
        Rejection: the file is too large to be rewritten.
    """
    with opened(path) as file:
        head = file.read(HEAD_BYTES)
    codec, has_header = _declared_in(head), HEADER.search(head) is not None
    is_other = first_other_line(path, UTF8 if has_header and not codec else ASCII) > 0
    if not is_other and not (all_bytes <= MOST_BYTES and has_match(path, MAY_BE_ESCAPED)):
        return path, ""
    require_few(all_bytes)
    line = 0 if codec else first_other_line(path)
    used = codec or (WINDOWS if line else UTF8)
    declare = bytes if has_header else OUR_HEADER.__add__
    lost = write_utf8(path, target, used, "replace", declare, change=partial(ESCAPED.sub, _character))
    if line:
        return target, (
            f"Text that is not UTF-8, first in line {line:,}, was read as Windows-1252, because the file names no code "
            "page for it. If letters are wrong, save it as DXF 2007 or later, and send it again."
        )
    return target, f"{lost:,} characters that the code page of the file does not have became U+FFFD." if lost else ""


def _character(escaped: re.Match[str]) -> str:
    return bytes.fromhex("".join(filter(None, escaped.groups()))).decode("utf-16-be")


def _declared_in(head: bytes) -> str | None:
    """The codec of the code page in which the text is, None if it is UTF-8 or the header does not tell."""
    version, named = VERSION.search(head), CODE_PAGE.search(head)
    if named is None or (version is not None and int(version[1]) >= FIRST_IN_UTF8):
        return None
    return CODECS.get(named[1].decode(ASCII, "replace").lower())
