"""Refuses a Shapefile whose .dbf does not match its .shp.

The driver goes by the .dbf: without a message, it leaves out shapes beyond the last record, adds features without
geometry for further records and for shapes that are cut off, and reads no attributes at all if the .dbf is cut off in
its header.
"""

import os
from functools import partial
from pathlib import Path

from service.engine.jailed import shape_records
from service.engine.workspace import Workplace
from service.errors import Rejection
from service.formats.facts import Count
from service.formats.names import shown
from service.formats.opened import opened
from service.formats.shx import is_whole
from service.formats.source import Part

SHX_HEADER = 100
SHX_RECORD = 8
SHP_WORDS_AT, WORD_BYTES = slice(24, 28), 2
DBF_HEADER = 32
DBF_RECORDS_AT = slice(4, 8)
DBF_HEADER_BYTES_AT = slice(8, 10)
REMEDY = (
    "One of the two is damaged or from another version of the data. Export the Shapefile again, or send the .shp alone "
    "to convert its shapes without attributes."
)


async def has_index(place: Workplace, part: Part, name: str) -> bool:
    """Whether the .shx of the Shapefile `part` leads to a shape for each record; a converter opens its .shp as `name`.

    If it does not, the driver repairs it, and the shapes themselves are counted. Entries for null shapes may be empty.

    Raises:
        Rejection: the numbers of shapes and records differ, or the .dbf has no complete header.
    """
    files = part.files
    if ".dbf" not in files:
        await place.look(partial(_require_length, files[".shp"], part.layer))
        return False
    records, indexed = await place.look(partial(counts, files[".dbf"], files[".shx"]))
    if records is None:
        raise Rejection(f"The .dbf of {shown(part.layer)!r} is empty or cut off. {REMEDY}")
    leads = partial(is_whole, files[".shx"], files[".shp"])
    if records == indexed and await place.look(leads):
        return True
    shapes = await place.call(shape_records.__name__, Count, name)
    if shapes < records == indexed and await place.look(partial(leads, records - shapes)):
        return True
    if shapes != records:
        raise Rejection(
            f"The .shp and the .dbf of {shown(part.layer)!r} do not match (shapes: {shapes:,}, records: {records:,}). "
            f"{REMEDY}"
        )
    return False


def _require_length(shp: Path, layer: str) -> None:
    """Refuse a .shp that is shorter than it says, of which the driver would leave out the last shapes. Blocking."""
    with opened(shp) as file:
        head, size = file.read(SHX_HEADER), os.fstat(file.fileno()).st_size
    said = int.from_bytes(head[SHP_WORDS_AT], "big") * WORD_BYTES
    if size < said:
        raise Rejection(
            f"The .shp of {shown(layer)!r} is cut off: it has {size:,} of {said:,} bytes. Send the whole file."
        )


def counts(dbf: Path, shx: Path) -> tuple[int | None, int]:
    """How many records `dbf` says that it has, None if its header is incomplete, and how many `shx` has. Blocking."""
    with opened(dbf) as file:
        header, size = file.read(DBF_HEADER), os.fstat(file.fileno()).st_size
    is_whole = len(header) == DBF_HEADER and int.from_bytes(header[DBF_HEADER_BYTES_AT], "little") <= size
    records = int.from_bytes(header[DBF_RECORDS_AT], "little") if is_whole else None
    return records, (shx.stat().st_size - SHX_HEADER) // SHX_RECORD
