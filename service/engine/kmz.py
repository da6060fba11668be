"""The document of a KMZ, in which each layer is a document of its own with the schema of its columns.

GDAL, and with it QGIS, shows the columns of a KMZ only if their schema is in the innermost document around the
features. The driver of KML writes layers as folders of one document, and their schemas before the first folder or
after the last.
"""

import os
import re
from collections.abc import Iterator, MutableMapping

CHUNK = 1 << 20
"""How much is held at once, and how long what precedes the first folder and what follows the last may be."""
MARKER_BYTES = 8 << 10
"""How long the line may be that begins a layer."""
BEGINS, ENDS = b"\n<Folder><name>", b"\n</Folder>"
BEGIN = re.compile(rb"\n<Folder>(<name>([^<]*+)</name>)")
SCHEMA = re.compile(rb'\n<Schema name="([^"<>]*+)"[^<>]*+>[^<]*+(?:<(?!/?Schema[\s>])[^<]*+)*+</Schema>')


def with_schemas(descriptor: int, size: int) -> Iterator[bytes]:
    """The content of the file that is open as `descriptor`, edited if it is as the driver writes it. Blocking."""
    head, tail_at = os.pread(descriptor, CHUNK, 0), max(0, size - CHUNK)
    tail = os.pread(descriptor, CHUNK, tail_at)
    first, last = head.find(BEGINS), tail.rfind(ENDS)
    if first < 0 or last < 0 or tail_at + last < first:
        yield from _pieces(descriptor, 0, size)
        return
    around = head[:first], tail[last:]
    schemas = {found[1]: found[0] for part in around for found in SCHEMA.finditer(part)}
    before, after = (SCHEMA.sub(b"", part) for part in around)
    yield before
    for piece in _pieces(descriptor, first, tail_at + last):
        yield _edited(piece, schemas)
    yield _edited(after, schemas)


def _edited(text: bytes, schemas: MutableMapping[bytes, bytes]) -> bytes:
    """`text` with its layers as documents, each schema in the first of its name: more copies could fill the memory."""
    text = text.replace(ENDS, b"\n</Document>")
    return BEGIN.sub(lambda found: b"\n<Document>" + found[1] + schemas.pop(found[2], b""), text)


def _pieces(descriptor: int, start: int, end: int) -> Iterator[bytes]:
    """What is between two positions, in pieces that do not end within a short line."""
    rest = b""
    while piece := os.pread(descriptor, min(CHUNK, end - start), start):
        start += len(piece)
        text = rest + piece
        whole = text.rfind(b"\n", max(0, len(text) - MARKER_BYTES)) if start < end else -1
        rest = text[whole:] if whole >= 0 else b""
        yield text[:whole] if whole >= 0 else text
    yield rest
