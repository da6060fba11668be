"""Finds what a user wrote into the properties of a workbook, which no target keeps."""

import re
from contextlib import suppress
from pathlib import Path

from service.errors import Rejection
from service.formats.archive import open_archive
from service.formats.bounds import Bounds
from service.formats.format import Format, reading_of

MOST_BYTES = 64 << 10
WRITTEN_BY_USERS = re.compile(
    rb"<(?:dc:title|dc:subject|dc:description|cp:keywords|cp:category|meta:keyword)\b[^<>]*+(?<!/)>\s*+[^<\s]"
)
"""Elements that programs leave empty, unlike those about authors, dates and themselves."""
TOLD = "The properties of the workbook (title, subject, description, keywords or category) were left out."


def property_warnings(row: Format, path: Path) -> list[str]:
    """What is told of the properties of the file at `path`, of the format `row`. Blocking.

    Nothing if it is no archive: its driver reports that.
    """
    name = reading_of(row).properties
    if name:
        with suppress(Rejection), open_archive(path, Bounds()) as archive:
            found = next((member for member in archive.members if member.path == name), None)
            if found is not None and WRITTEN_BY_USERS.search(archive.head(found, MOST_BYTES)):
                return [TOLD]
    return []
