"""Guesses the encoding of the text in a .dbf without a .cpg.

GDAL passes bytes through when the language byte is 0, and reads Latin-1 when it is 0x57, which most software writes
whatever the encoding is. Text that is valid UTF-8 and not ASCII is UTF-8 in practice; all else is Windows-1252.
"""

import codecs
from pathlib import Path
from typing import BinaryIO

LANGUAGE_BYTE = 29
RECORDS_AT = slice(8, 10)
HEADER_BYTES = 32
UNRELIABLE = frozenset({0x00, 0x57})
NO_UNICODE, UTF8 = "CP1252", "UTF-8"
CHUNK = 1 << 20


def guess_encoding(dbf: Path) -> str:
    """The encoding of the .dbf at `dbf`; "" if its language byte can be trusted or all text is ASCII. Blocking."""
    with dbf.open("rb") as file:
        header = file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES or header[LANGUAGE_BYTE] not in UNRELIABLE:
            return ""
        file.seek(int.from_bytes(header[RECORDS_AT], "little"))
        return encoding_from(file)


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
