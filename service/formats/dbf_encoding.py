"""Guesses the encoding of the text in a .dbf without a .cpg.

GDAL passes bytes through when the language byte is 0, and reads Latin-1 when it is 0x57, which most software writes
whatever the encoding is. Text that is valid UTF-8 and not ASCII is UTF-8 in practice; all else is Windows-1252.
"""

import codecs
import re
from collections.abc import Container
from pathlib import Path
from typing import BinaryIO

from service.formats.opened import opened

LANGUAGE_BYTE = 29
RECORDS_AT = slice(8, 10)
HEADER_BYTES = 32
TRUSTED = frozenset(range(256)) - {0x00, 0x57}
NO_UNICODE, UTF8 = "CP1252", "UTF-8"
SINGLE_BYTE = re.compile(r"CP(?!9)|ISO|KOI8")
"""How encodings are called in which no text but that of a few symbols is UTF-8."""
CODE_PAGES = {0x01: 437, 0x02: 850, 0x03: 1252, 0x64: 852, 0x65: 866, 0xC8: 1250, 0xC9: 1251, 0xCA: 1254, 0xCB: 1253}
"""By language byte."""
OTHER_PAGES = {0x7D: "CP1255", 0x7E: "CP1256"}
"""Those of Hebrew and Arabic, which GDAL does not know."""
CHUNK = 1 << 20


def guess_encoding(dbf: Path, trusted: Container[int] = TRUSTED) -> str:
    """The encoding of the .dbf at `dbf`, "" if all text is ASCII, or GDAL knows its language byte. Blocking.

    A language byte that is not `trusted` says nothing.
    """
    with opened(dbf) as file:
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            return ""
        if header[LANGUAGE_BYTE] in trusted:
            return OTHER_PAGES.get(header[LANGUAGE_BYTE], "")
        file.seek(int.from_bytes(header[RECORDS_AT], "little"))
        return encoding_from(file)


def looks_like_utf8(dbf: Path, declared: str) -> bool:
    """Whether all text of `dbf` is UTF-8, although it is read as another encoding. Blocking.

    `declared` is that of its .cpg, "" if that has none or its language byte says it.
    """
    with opened(dbf) as file:
        header = file.read(HEADER_BYTES)
        page = CODE_PAGES.get(header[LANGUAGE_BYTE]) if len(header) == HEADER_BYTES and not declared else None
        if not SINGLE_BYTE.match(f"CP{page}" if page else declared):
            return False
        file.seek(int.from_bytes(header[RECORDS_AT], "little"))
        return encoding_from(file) == UTF8


def encoding_from(file: BinaryIO) -> str:
    """The encoding of the text from where `file` is; "" if all of it is ASCII. Blocking."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    ascii_only = True
    try:
        while chunk := file.read(CHUNK):
            ascii_only = ascii_only and chunk.isascii()
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return NO_UNICODE
    return "" if ascii_only else UTF8
