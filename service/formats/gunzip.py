"""Unpacks an untrusted .gz of one file in pieces, within the same bounds as a ZIP."""

import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from service.errors import Rejection
from service.formats.bounds import Bounds, Unpacked
from service.formats.opened import opened

CHUNK = 64 * 1024
MAX_PARTS = 50_000
"""A .gz may consist of several parts in a row; programs that compress in blocks write one for every 64 KiB."""
WITH_HEADER = zlib.MAX_WBITS | 16
MAGIC = b"\x1f\x8b"
DAMAGED = "The .gz is damaged. Compress the file again, and send the complete .gz."


def gunzip(path: Path, target: Path, bounds: Bounds) -> None:
    """Unpack the .gz at `path` into the new file `target`.

    Raises:
        Rejection: it is damaged or cut off, or unpacks to more than the bounds allow.
    """
    unpacked = Unpacked(".gz", path.stat().st_size, bounds)
    with opened(path) as packed:
        unpacked.write(_pieces(packed), target)


def _pieces(packed: BufferedReader) -> Iterator[bytes]:
    rest = packed.read(CHUNK)
    for _ in range(MAX_PARTS):
        part = zlib.decompressobj(WITH_HEADER)
        while not part.eof:
            rest = rest or packed.read(CHUNK)
            if not rest:
                raise Rejection("The .gz is cut off. Send the complete file.")
            yield _inflate(part, rest)
            rest = part.unconsumed_tail
        rest = _next_part(packed, part.unused_data)
        if not rest:
            return
    raise Rejection(f"The .gz is made of more than {MAX_PARTS:,} parts. Pack the file again, in one piece.")


def _inflate(part: "zlib._Decompress", data: bytes) -> bytes:
    try:
        return part.decompress(data, CHUNK)
    except zlib.error:
        raise Rejection(DAMAGED) from None


def _next_part(packed: BufferedReader, rest: bytes) -> bytes:
    """What follows a part: the next one, or nothing; a file may be padded with zeros."""
    rest = rest if len(rest) >= len(MAGIC) else rest + packed.read(CHUNK)
    while rest and not rest.strip(b"\0"):
        rest = packed.read(CHUNK)
    if rest and not rest.startswith(MAGIC):
        raise Rejection(DAMAGED)
    return rest
