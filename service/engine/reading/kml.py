"""Reads KML, in which data may have the names of elements."""

import re
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.jailed import kml_names
from service.engine.reading.files import read_documents
from service.engine.reading.work_file import LISTED, WorkFile
from service.engine.workspace import Workplace, staged_names
from service.formats.facts import MAX_COLUMNS, Name
from service.formats.left_out import has_match
from service.formats.names import listed, shown
from service.formats.source import Source
from service.formats.xml_columns import KML_ENDS, KML_NAMES, require_few_columns

ELEMENTS = b"|".join(kml_names.ELEMENTS)
LIKE_ELEMENTS = re.compile(rb"<(?:Data|SimpleField)\s[^<>]*?\bname\s*=\s*[\"'](?i:" + ELEMENTS + rb")[\"']")
"""A declaration of data with the name of an element."""
NEW_FILE = "new.kml"
NewNames = Annotated[dict[Name, Name], Meta(max_length=MAX_COLUMNS)]


async def read_kml(place: Workplace, source: Source) -> WorkFile:
    """Read the documents, after data with the names of elements was told from these.

    Raises:
        Rejection: the driver would take too long, or the file cannot be read.
    """
    renamed: dict[str, str] = {}
    for part, file in zip(source.parts, staged_names(source), strict=True):
        few = partial(require_few_columns, part.text, KML_ENDS, KML_NAMES)
        await place.look(few)
        if await place.look(partial(has_match, part.text, LIKE_ELEMENTS)):
            renamed |= await _tell_apart(place, file)
    found = await read_documents(place, source)
    if not renamed:
        return found
    pairs = listed([f"{shown(old)!r} became {shown(new)!r}" for old, new in renamed.items()], LISTED)
    told = f"Data with the names of elements of KML, but other content, was renamed: {pairs}."
    return msgspec.structs.replace(found, warnings=(told, *found.warnings))


async def _tell_apart(place: Workplace, file: str) -> dict[str, str]:
    """Tell data in `file` from elements of the same name; return the new names of what was renamed."""
    names = await place.call(kml_names.__name__, NewNames, file, NEW_FILE)
    if await place.has(NEW_FILE):
        await place.discard(file)
        await place.rename(NEW_FILE, file)
    return names
