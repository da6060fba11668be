"""Reads databases, whose values may be of other types than their columns declare."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.jailed import column_types
from service.engine.jailed.column_types import ExaminedDatabase
from service.engine.jailed.database import ENTRIES, told_apart
from service.engine.mistyped import GeoPackageCheck, TypeCheck
from service.engine.reading.files import reading_with_options
from service.engine.reading.table_checks import ROUNDED, ZEROS_LEFT_OUT
from service.engine.reading.work_file import LISTED, WorkFile, hold_or_read, told_of
from service.engine.session import Answer, Session
from service.engine.session_loading import Opening, hold
from service.engine.workspace import Workplace, staged_names
from service.errors import Rejection
from service.formats.facts import MAX_LAYERS, Count, Name
from service.formats.format import reading_of
from service.formats.names import listed, quotes
from service.formats.source import Source
from service.formats.table.databases import (
    CODES_LEFT_OUT,
    DESCRIPTIONS_LEFT_OUT,
    EPOCH_LEFT_OUT,
    RELATIONS_LEFT_OUT,
    RULES_LEFT_OUT,
    TITLES_LEFT_OUT,
)

TYPED_FILES = {"": "typed.sqlite", column_types.GEOPACKAGE: "typed.gpkg"}
"""By its kind: a copy of a database with types of columns that its driver reads, if it has others."""


class _Entries(Answer, frozen=True):
    """What `ENTRIES` finds."""

    found: Annotated[tuple[tuple[tuple[Name, Count, Count | None], ...], ...], Meta(max_length=1)]


async def read_database(place: Workplace, source: Source) -> WorkFile:
    """Read the tables that hold data; the driver lists no plain tables beside spatial ones."""
    reading = reading_with_options(source)
    check = TypeCheck()
    facts = await hold(place, reading, [Opening(staged_names(source)[0], reading.options)], check, _find_tables)
    if facts is not None:
        return WorkFile((*told_of(check, _RULES), *_unnumbered(check.left_out)), facts=facts)
    origin, found = await _typed(place, source, "")
    readable = list(filter(_is_readable, found.tables))
    if not readable:
        raise Rejection("The database holds no data tables, so there is nothing to convert.")
    return await _read(place, source, origin, found, readable)


async def _find_tables(session: Session) -> Sequence[str] | None:
    """The tables of the database that is open; None if not all of it is read, or in the session."""
    told = await session.ask(_Entries, "query", ENTRIES)
    tables, derived = told_apart(*told.found) if told.ok and told.found else ([], [])
    is_whole = len(tables) <= MAX_LAYERS and not derived and all(map(_is_readable, tables))
    return tables if is_whole else None


def _is_readable(table: str) -> bool:
    """Whether its name can be on a command line."""
    return table.isprintable() and not table.startswith(("-", "@"))


async def read_geopackage(place: Workplace, source: Source) -> WorkFile:
    """Read all layers."""
    reading = reading_with_options(source)
    check = GeoPackageCheck()
    facts = await hold(place, reading, [Opening(staged_names(source)[0], reading.options)], check)
    if facts is not None:
        told = (*told_of(check.beside, _BESIDE), *told_of(check, _RULES), *_unnumbered(check.left_out))
        return WorkFile(told, facts=facts)
    origin, found = await _typed(place, source, column_types.GEOPACKAGE)
    if found.beside.tiles and not found.tables:
        raise Rejection("The GeoPackage holds only rasters or tiles, which are not converted.")
    if found.beside.unplaced == len(found.tables) > 0:
        raise Rejection(f"The GeoPackage does not say which columns have the geometries of its layers. {REGISTER}")
    return await _read(place, source, origin, found, ())


async def _typed(place: Workplace, source: Source, kind: str) -> tuple[str, ExaminedDatabase]:
    """The database with types that its driver reads, and what is known of it."""
    file, copy = staged_names(source)[0], TYPED_FILES[kind]
    prefix = reading_of(source.format).column_prefix
    found = await place.call(column_types.__name__, ExaminedDatabase, file, copy, kind, prefix)
    return (copy if await place.has(copy) else file), found


async def _read(
    place: Workplace, source: Source, origin: str, found: ExaminedDatabase, layers: Sequence[str]
) -> WorkFile:
    reading = reading_with_options(source)
    place.clock_times = {table: {*times} for table, times in found.clock_times.items()}
    read = await hold_or_read(place, reading, origin, layers)
    if origin in TYPED_FILES.values() and read.facts is None:  # what is held may be read again
        await place.discard(origin)
    return msgspec.structs.replace(read, warnings=(*read.warnings, *_warnings(found)))


REGISTER = "Add their rows to gpkg_geometry_columns, and send the file again."
_BESIDE = {
    "said": DESCRIPTIONS_LEFT_OUT,
    "titles": TITLES_LEFT_OUT,
    "epochs": EPOCH_LEFT_OUT,
    "relations": RELATIONS_LEFT_OUT,
    "unregistered": "Tables that gpkg_contents does not list ({count}) were left out. List them there as attributes, "
    "and send the file again.",
    "tiles": "Rasters and tiles ({tables}) were left out.",
    "codes": CODES_LEFT_OUT,
    "unplaced": f"Layers of which gpkg_geometry_columns has no row ({{count}}) were left out. {REGISTER}",
    "unlisted": "The geometries of {tables} were not read, because gpkg_contents lists these tables as attributes. "
    "Set its data_type to features, and send the file again.",
}
"""What is told of what a database holds beside its layers."""
_RULES = {"rules": RULES_LEFT_OUT}
_OF_VALUES = {
    "mistyped": "Columns with values of other types than the database declares ({values}) became columns of texts with "
    "all their values.",
    "spelled": "Binary values beside others ({values}) became hexadecimal texts.",
    "cut": ZEROS_LEFT_OUT,
    "unread": "Geometries that are not stored as this format does, such as texts or plain WKB ({values}), were left "
    "out. Store them as the format does, and send it again.",
    "foreign": "Geometries that name another coordinate system than their table ({values}) were read as if they were "
    "in that of the table. If this is wrong, give both the same system, and send the file again.",
    "second": "Geometries after the first one of a row ({values}) were left out.",
    "rounded": ROUNDED,
}
"""What is told of its values, by kind."""


def _warnings(found: ExaminedDatabase) -> Iterator[str]:
    yield from told_of(found.beside, _BESIDE)
    yield from told_of(found, _RULES | _OF_VALUES)
    if found.derived:
        yield f"Views and virtual tables were left out: {listed(quotes(found.derived), LISTED)}."
    if found.unknown:
        yield (
            f"In views that call functions of other programs ({listed(quotes(found.unknown), LISTED)}), computed "
            "numbers may have become texts, and the first column of integers may have been left out. If that matters, "
            "save the views as tables, and send the file again."
        )
    yield from _unnumbered(found.left_out)


def _unnumbered(keys: Sequence[str]) -> Iterator[str]:
    if keys:
        yield (
            f"{listed(quotes(keys), LISTED)} numbers the rows of tables, but not as 1, 2, 3 and so on; "
            "these numbers were left out. Give the column another name to keep them."
        )
