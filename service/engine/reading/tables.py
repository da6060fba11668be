"""Reads files whose geometry may be in ordinary columns: delimited text, workbooks, and Parquet without its driver."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.diagnostics import find_changes
from service.engine.jailed import PARQUET_READING, delimited, sheets, whole_geometries
from service.engine.jailed.places import WKT, Table, Wanted, X, Y, Z
from service.engine.reading.files import read_document, reading_with_options
from service.engine.reading.table_checks import (
    ROUNDED,
    ZEROS_LEFT_OUT,
    Tables,
    is_unplaced,
    numbered_headers,
    require_places,
    table_warnings,
)
from service.engine.reading.work_file import (
    LISTED,
    WORK_DRIVER,
    FormerTypes,
    WorkFile,
    add_table,
    read_layers,
    told_of,
)
from service.engine.session_csv import tabulate
from service.engine.session_loading import Opening, hold, may_hold
from service.engine.session_points import Placing
from service.engine.workbooks import FoundCells, prepare_workbook, rounded_in, workbook_warnings
from service.engine.workspace import WORK_FILE, Workplace, staged_names
from service.errors import Rejection
from service.formats.facts import MAX_COLUMNS, Count, Facts, Name, require_short_names
from service.formats.format import Reading, reading_of
from service.formats.names import listed, shown
from service.formats.request import ConversionRequest
from service.formats.source import Source
from service.formats.table.databases import DESCRIPTIONS_LEFT_OUT, EPOCH_LEFT_OUT, RULES_LEFT_OUT, TITLES_LEFT_OUT

CSV_DRIVER = "CSV"
SHEETS_FILE = "sheets.gpkg"
GATHERED_FILE = "gathered.gpkg"
WHOLE_FILE = "whole.wkt"
LARGEST_WORKBOOK_BYTES = 8 << 20
"""Larger ones would take 200 MB and more, for their driver holds a copy of the rows. Some are read twice, because their
content must be examined one by one: that costs a third more, but the other way costs twice as much for all."""
_OF_OURS = ("HEADERS=YES", "EMPTY_STRING_AS_NULL=YES", "KEEP_GEOM_COLUMNS=NO")
"""The driver would take a header in which a name is a number for data."""
_XY = (f"X_POSSIBLE_NAMES={X}", f"Y_POSSIBLE_NAMES={Y}")
PLACES: Mapping[str, tuple[str, ...]] = {
    "": _OF_OURS,
    "xy": (*_OF_OURS, *_XY),
    "xyz": (*_OF_OURS, *_XY, f"Z_POSSIBLE_NAMES={Z}"),
    "wkt": (*_OF_OURS, f"GEOM_POSSIBLE_NAMES={WKT}"),
}
"""The open options with which the CSV driver finds the header and the geometry."""
OURS = Reading(drivers=(CSV_DRIVER,))
"""How normalized tables are read."""
LINES_OF_WKT = "wkt"
"""What the column of a file of geometries alone is called."""
NO_GEOMETRIES = (
    "No line of the file begins with a geometry in WKT, such as POINT (7 50). Write one a line, or send a table with "
    "other columns as .csv."
)
Counts = Annotated[dict[Name, Count], Meta(max_length=MAX_COLUMNS)]


class _Changes(msgspec.Struct, frozen=True):
    """By column, how many values of a Parquet file lose digits or bytes, become times in UTC, missing, or hexadecimal.

    Also how many structures have members that get other names; how many geometries cannot be read, lose what their
    edges are, or are of further columns; the names of columns that get others; the types that change; how many columns
    may not miss values, and how many have titles; whether geometries are of an epoch; and how often the file describes
    itself.
    """

    rounded: Counts
    moved: Counts
    unheld: Counts
    nan: Counts
    infinite_in_lists: Counts
    spelled_in_lists: Counts
    foreign: Counts
    zeros: Counts
    repeated: Counts
    emptied: Counts
    infinite: Counts
    spelled: Counts
    unread: Counts
    curved: Counts
    second: Counts
    renamed: Annotated[tuple[tuple[Name, Name], ...], Meta(max_length=MAX_COLUMNS)]
    was: FormerTypes
    rules: Count
    epochs: Count
    titles: Count
    said: Count

    def warnings(self) -> Iterator[str]:
        """The sentences for the client."""
        if self.renamed:
            pairs = listed([f"{shown(old)!r} became {shown(new)!r}" for old, new in self.renamed], LISTED)
            yield (
                "Columns were renamed because their names are empty, have zero bytes, or differ from others at most in "
                f"case: {pairs}."
            )
        yield from told_of(self, _CHANGED)


_CHANGED = {
    "rules": RULES_LEFT_OUT,
    "epochs": EPOCH_LEFT_OUT,
    "titles": TITLES_LEFT_OUT,
    "said": DESCRIPTIONS_LEFT_OUT,
    "rounded": ROUNDED,
    "moved": "Times in zones that have names, or with offsets that are not quarters of an hour ({values}), were "
    "converted to UTC.",
    "unheld": "Dates before the year 1 or after 9999, and infinite ones ({values}), became missing.",
    "nan": "Numbers that are NaN ({values}) became missing.",
    "infinite_in_lists": "Infinite numbers in lists and structures ({values}) became missing: JSON has none.",
    "spelled_in_lists": "Decimals and binary values in lists and structures ({values}) became texts, such as 1.10 and "
    "00FF: JSON has none.",
    "foreign": "Texts that are not UTF-8, which the format requires ({values}), were read as Windows-1252.",
    "zeros": ZEROS_LEFT_OUT,
    "repeated": "Structures with several members of one name ({values}) got a number behind all of these names but the "
    "first, such as name_2.",
    "emptied": "Tables without geometry of their own cannot tell an empty text from a missing value; {values} became "
    "missing.",
    "infinite": "Tables without geometry of their own have no infinite numbers; {values} became missing.",
    "unread": "Geometries that cannot be read ({values}) were left out.",
    "curved": "Edges that follow the curvature of the Earth, as the file says (edges; {values}), became straight lines "
    "between the same positions.",
    "second": "Further geometries ({values}) were read as data, such as WKB, in the coordinates of the file, because a "
    "feature has only one.",
    "spelled": "Binary values ({values}) became hexadecimal texts.",
}
"""What is told of each kind of change, and of what the file says beside its values."""


async def read_delimited(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Normalize the table in the run that will hold it, or else in a Python program."""
    file, reading = staged_names(source)[0], reading_of(source.format)
    table = await tabulate(place, file, Wanted(**_wanted_columns(request)), reading.delimiter, OURS)
    tables: Sequence[Table] = [table] if table is not None else []
    if not tables:
        tables = await _delimited(place, file, request, reading)
    if reading.only_geometries and not all(table.places and not table.strange for table in tables):
        await place.python(whole_geometries.__name__, file, WHOLE_FILE)
        tables = await _delimited(place, WHOLE_FILE, request, reading)
        if not any(table.places for table in tables):
            raise Rejection(NO_GEOMETRIES)
    if reading.only_geometries:
        tables = list(map(_with_name, tables))
    return await _read_tables(place, request, tables)


def _with_name(table: Table) -> Table:
    """A table of lines of WKT with a name for their column, which has none in the file."""
    made = next(iter(table.originals.values()), None)

    def renamed(counts: Mapping[str, int]) -> dict[str, int]:
        return {LINES_OF_WKT if name == made else name: count for name, count in counts.items()}

    return msgspec.structs.replace(
        table,
        columns=tuple(LINES_OF_WKT if name == made else name for name in table.columns),
        originals={ours: LINES_OF_WKT if name == made else name for ours, name in table.originals.items()},
        longer=renamed(table.longer),
        assumed=renamed(table.assumed),
    )


async def _delimited(place: Workplace, file: str, request: ConversionRequest, reading: Reading) -> Tables:
    return await _tables(place, delimited.__name__, file, _wanted(request), reading.delimiter)


async def read_workbook(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Convert sheets to tables, and find the geometry of the tables."""
    reading = reading_with_options(source)
    file, found = await prepare_workbook(place, staged_names(source)[0], source.parts[0].extension, reading)
    told = tuple(workbook_warnings(found))
    if place.input_bytes <= LARGEST_WORKBOOK_BYTES:
        placing = Placing(Wanted(**_wanted_columns(request)), doubts_types=reading.types_by_first_row)
        facts = await hold(place, reading, [Opening(file)], placing)
        if facts is not None:
            require_places(placing.tables, request)
            return WorkFile(
                (*told, *_numbered(found, placing.tables), *table_warnings(placing.tables)),
                facts=facts,
                is_unplaced=is_unplaced(placing.tables),
                rounded=rounded_in(found),
                truths=found.get("truths", 0),
            )
    elif place.session is not None:
        await place.session.abandon()
    read = await read_layers(place, reading, file)
    await place.rename(WORK_FILE, SHEETS_FILE)
    written = await _sheets(place, request, file if reading.types_by_first_row else "", of_sheets=True)
    tables = await _read_tables(place, request, written)
    names = {table: read.names.get(name, name) for table, name in tables.names.items()}
    told = (*told, *read.warnings, *_numbered(found, written), *tables.warnings)
    return msgspec.structs.replace(
        tables, warnings=told, names=names, rounded=rounded_in(found), truths=found.get("truths", 0)
    )


def _numbered(found: FoundCells, tables: Sequence[Table]) -> Iterator[str]:
    """What is told of headers with numbers, unless these are dates, which are told."""
    return iter(()) if found.get("named") else numbered_headers(tables)


async def _sheets(
    place: Workplace, request: ConversionRequest, workbook: str = "", *, of_sheets: bool = False
) -> Tables:
    """The tables of what the driver read, of a `workbook` if it does not tell the types of all its columns."""
    ends = "sheets" if of_sheets else ""
    return await _tables(place, sheets.__name__, SHEETS_FILE, _wanted(request), workbook, ends)


def _wanted(request: ConversionRequest) -> str:
    """The columns that the request names, for the programs in the sandbox."""
    return json.dumps(_wanted_columns(request))


def _wanted_columns(request: ConversionRequest) -> dict[str, str]:
    return {field.removesuffix("Field"): name for field, name in request.place_fields.items()}


async def _tables(place: Workplace, program: str, *arguments: str) -> Tables:
    """The tables that a program in the sandbox writes."""
    tables = await place.call(program, Tables, *arguments)
    if not tables:
        raise Rejection("The file holds no table, so there is nothing to convert.")
    return tables


async def _read_tables(place: Workplace, request: ConversionRequest, tables: Sequence[Table]) -> WorkFile:
    """Read the normalized tables, in which the columns with the geometry have fixed names."""
    for table in tables:
        require_short_names(table.columns)
    require_places(tables, request)
    names = {f"t{number}": table.name for number, table in enumerate(tables)}
    openings = [
        Opening(f"t{number}.csv", PLACES[table.places], table.srid, is_placed=bool(table.places), placed=table.placed)
        for number, table in enumerate(tables)
    ]
    facts = await hold(place, OURS, openings)
    if facts is not None:
        return WorkFile(tuple(table_warnings(tables)), names, facts, is_unplaced=is_unplaced(tables))
    messages, unknown = [], ""
    for number, opening in enumerate(openings):
        told, unplaced = await add_table(place, OURS, number, opening)
        unknown = unknown or unplaced
        messages.append(told)
    return WorkFile(
        (*table_warnings(tables), *find_changes("\n".join(messages))),
        names,
        None,
        system=unknown,
        is_unplaced=is_unplaced(tables),
        cells={
            f"t{number}": {"file": f"t{number}.csv", "delimiter": table.delimiter, "originals": dict(table.originals)}
            for number, table in enumerate(tables)
            if table.places
        },
    )


async def read_parquet(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Read the file by its driver, or where GDAL lacks that, by a Python program."""
    if not place.host.drivers.keys().isdisjoint(reading_of(source.format).drivers):
        return await read_document(place, source)
    changes = await place.call(PARQUET_READING, _Changes, staged_names(source)[0], WORK_FILE, SHEETS_FILE)
    if await place.has(WORK_FILE):
        facts = await _hold_work_file(place, reading_of(source.format))
        return WorkFile(tuple(changes.warnings()), facts=facts, was=changes.was)
    tables = await _sheets(place, request)
    places = {name for table in tables for name in table.originals.values()}
    spelled = {name: count for name, count in changes.spelled.items() if name not in places}
    told = msgspec.structs.replace(changes, spelled=spelled).warnings()
    found = await _read_tables(place, request, tables)
    warnings = (*told, *found.warnings)
    return msgspec.structs.replace(found, warnings=warnings, is_unplaced=False, was=changes.was)  # as the driver's


async def _hold_work_file(place: Workplace, reading: Reading) -> Facts | None:
    """Have a session hold the work file that one of our programs has written, so that one run does all that follows.

    None if it cannot; the work file is unchanged then. Otherwise a session may need its name for one of its own. It may
    be much larger than the upload, which is compressed.
    """
    if not may_hold(await place.size_of(WORK_FILE)):
        return None
    await place.rename(WORK_FILE, GATHERED_FILE)
    facts = await hold(place, msgspec.structs.replace(reading, drivers=(WORK_DRIVER,)), [Opening(GATHERED_FILE)])
    if facts is None:
        await place.rename(GATHERED_FILE, WORK_FILE)
    return facts
