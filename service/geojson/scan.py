"""One streaming pass over a GeoJSON document.

Small files are scanned by calling `scan`; for others `python -m service.geojson.scan FILE OUTPUT [edges] [COPY]` runs
in the sandbox and writes its outcome to OUTPUT, and a normalized copy to COPY if the converter needs one.
"""

import gc
import mmap
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from service.geojson.document import Document
from service.geojson.features import Feature
from service.geojson.findings import Scan, ScanOutcome, read_scan, write_outcome
from service.geojson.geometries import SAMPLE_BYTES
from service.geojson.normalize import mode_for, normalize
from service.geojson.refusals import Reason, Unreadable
from service.geojson.tally import Tally

__all__ = ["EDGES", "INLINE_BYTES", "is_quick", "read_light", "read_scan", "scan", "scan_bytes"]

EDGES = "edges"
"""The argument for `seeks_edges`."""
INLINE_BYTES = 256 << 10
INLINE_OBJECTS = 8 << 10
INLINE_EMPTY_ARRAYS = 1 << 10
NUMBERS_PER_ARRAY = 3
INLINE_NAMES = 1000
"""As `blocking.INLINE_COLUMNS`, which would load asyncio into the program in the sandbox."""
INLINE_VALUES = 4 << 10
"""Up to here the values and escapes of a document are few: crafted, each takes some microseconds."""
WHOLE_BYTES = SAMPLE_BYTES
"""Up to this size, all features are counted in one batch: a batch costs as much as dozens of features, and a document
has at least three. Larger documents, whose coordinates are sampled, are counted in batches."""


def read_light(path: Path) -> bytes | None:
    """The document at `path` if the gateway itself may scan it: it is small and cheap to scan.

    A document of 256 KiB takes two milliseconds; one crafted from brackets alone could take seconds.
    """
    # a file object costs more than the rest; a converter may have put a pipe there, which would be waited for
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > INLINE_BYTES:
            return None
        data = os.read(descriptor, size_bytes)
    finally:
        os.close(descriptor)
    arrays = data.count(b"[")
    is_light = (
        data.count(b"{") <= INLINE_OBJECTS
        and data.count(b"[[") <= INLINE_OBJECTS
        and data.count(b"[]") <= INLINE_EMPTY_ARRAYS
        and data.count(b",") <= NUMBERS_PER_ARRAY * arrays + data.count(b":") + INLINE_EMPTY_ARRAYS
    )
    return data if is_light else None


def is_quick(document: bytes) -> bool:
    """Whether a document that is light, however crafted, is scanned or normalized before others notice."""
    names, values = document.count(b":"), document.count(b",") + document.count(b"\\")
    return names <= INLINE_NAMES and values <= INLINE_VALUES


def scan(path: Path, *, seeks_edges: bool = False) -> Scan:
    """Scan the GeoJSON document at `path`.

    Memory is bounded by a few megabytes plus the largest feature. With `seeks_edges`, the coordinates are searched for
    positions where maps of the world end, which takes 10 ms per megabyte.

    Raises:
        Unreadable: the document is not GeoJSON that the converter would read.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise Unreadable(Reason.EMPTY)
        document = Document(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return _scan(document, document.batches(), seeks_edges=seeks_edges)


def scan_bytes(data: bytes, *, seeks_edges: bool = False) -> Scan:
    """Scan a GeoJSON document in memory, as `scan` does."""
    if not data:
        raise Unreadable(Reason.EMPTY)
    document = Document(data)
    if len(data) > WHOLE_BYTES:
        return _scan(document, document.batches(), seeks_edges=seeks_edges)
    return _scan(document, [list(chain.from_iterable(document.batches()))], seeks_edges=seeks_edges)


def _scan(document: Document, batches: Iterable[Sequence[Feature]], *, seeks_edges: bool) -> Scan:
    tally = Tally(seeks_edges=seeks_edges)
    try:
        for batch in batches:
            tally.add(batch)
    except MemoryError:
        raise Unreadable(Reason.NO_SCAN) from None
    return tally.findings(document)


def main(arguments: list[str]) -> None:
    """Scan the file given first, and write the outcome to the file given second.

    Of further arguments, `EDGES` seeks edges, and another one is where a normalized copy goes, if one is needed.
    """
    gc.disable()  # there are no cycles, and traversing the features of a window is wasted time
    document, output = map(Path, arguments[:2])
    try:
        found = scan(document, seeks_edges=EDGES in arguments[2:])
    except Unreadable as refusal:
        write_outcome(output, ScanOutcome(refused=refusal.reason, line=refusal.line))
        return
    write_outcome(output, ScanOutcome(scan=found))
    mode = mode_for(found)
    for copy in arguments[2:]:
        if mode is not None and copy != EDGES:
            normalize(document, Path(copy), mode)


if __name__ == "__main__":
    main(sys.argv[1:])
