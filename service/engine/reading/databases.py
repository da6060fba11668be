"""Reads databases, whose values may be of other types than their columns declare."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.holding import Opening, hold
from service.engine.jailed import column_types, database
from service.engine.mistyped import TypeCheck
from service.engine.reading.files import reading_with_options
from service.engine.reading.work_file import LISTED, TABLES_FILE, WorkFile, read_layers
from service.engine.workspace import Workplace, staged_names
from service.errors import Rejection
from service.formats.detect import Source
from service.formats.facts import MAX_COLUMNS, MAX_LAYERS, Count, Name
from service.formats.format import reading_of
from service.formats.names import values_of

TYPED_FILE = "typed.gpkg"
"""A copy of a GeoPackage with types of columns that its driver reads, if it has others."""
TableNames = Annotated[tuple[Name, ...], Meta(max_length=MAX_LAYERS)]


class _Database(msgspec.Struct, frozen=True):
    """The tables of a database, and by column how many values are of another type than it declares."""

    tables: TableNames
    mistyped: Annotated[Mapping[Name, Count], Meta(max_length=MAX_COLUMNS * MAX_LAYERS)]


async def read_database(place: Workplace, source: Source) -> WorkFile:
    """Read the tables that hold data; the driver lists no plain tables beside spatial ones."""
    await place.python(database.__name__, staged_names(source)[0], TABLES_FILE)
    found = await place.read_json(TABLES_FILE, _Database)
    names = found.tables
    readable = [name for name in names if name.isprintable() and not name.startswith(("-", "@"))]
    if not readable:
        raise Rejection("The database holds no table of data, so there is nothing to convert.")
    read = await read_layers(place, reading_of(source.format), staged_names(source)[0], readable)
    return msgspec.structs.replace(read, warnings=(*read.warnings, *_mistyped_warnings(found.mistyped)))


async def read_geopackage(place: Workplace, source: Source) -> WorkFile:
    """Read all layers, and count values that are not of the type that their columns declare."""
    reading, check = reading_with_options(source), TypeCheck()
    file = staged_names(source)[0]
    facts = await hold(place, reading, [Opening(file, reading.options)], check)
    if facts is not None:
        return WorkFile(tuple(_mistyped_warnings(check.mistyped)), facts=facts)
    await place.python(column_types.__name__, file, TYPED_FILE)
    origin = TYPED_FILE if await place.has(TYPED_FILE) else file
    read = await read_layers(place, reading, origin)
    await place.python(database.__name__, origin, TABLES_FILE, database.GEOPACKAGE)
    await place.discard(TYPED_FILE)
    found = await place.read_json(TABLES_FILE, _Database)
    return msgspec.structs.replace(read, warnings=(*read.warnings, *_mistyped_warnings(found.mistyped)))


def _mistyped_warnings(mistyped: Mapping[str, int]) -> Iterator[str]:
    if mistyped:
        yield (
            f"{values_of(mistyped, LISTED)} are of other types than the database declares for the "
            "columns; they may have become 0 or empty. Declare these columns as TEXT to keep them."
        )
