"""Reads an upload into the work file: a GeoPackage, whatever the input was.

Only the input's own driver and GeoPackage are registered while the untrusted file is read.
"""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from service.blocking import run_blocking
from service.engine import jailed
from service.engine.diagnostics import find_renames
from service.engine.holding import Opening, hold
from service.engine.jailed import database, delimited, lines, relabel, shape_records, sheets
from service.engine.jailed import facts as facts_program
from service.engine.jailed.gpkg import FID, GEOMETRY
from service.engine.jailed.place_names import find_pairs
from service.engine.jailed.places import WKT, Table, Wanted, X, Y, Z
from service.engine.mistyped import TypeCheck
from service.engine.placing import Placing
from service.engine.seen import SeenLayer
from service.engine.session import Session
from service.engine.shape_records import require_match
from service.engine.tabulating import tabulate
from service.engine.workbooks import prepare_workbook
from service.engine.workspace import WORK_FILE, Workplace, staged_names
from service.errors import Rejection
from service.formats.crs import MAX_CODE
from service.formats.dbf_encoding import NO_UNICODE, guess_encoding
from service.formats.detect import Part, Source
from service.formats.esri_codes import esri_code
from service.formats.facts import MAX_COLUMNS, MAX_LAYERS, Count, Facts, Name, TableName
from service.formats.format import Reader, Reading, reading_of
from service.formats.names import listed, quotes, shown, values_of
from service.formats.request import ConversionRequest

WORK_DRIVER = "GPKG"
TEXT_FOR_LISTS = "IntegerList=String,Integer64List=String,RealList=String,StringList=String"
UNGROUPED = (
    "-f",
    WORK_DRIVER,
    "-unsetFid",
    "-forceNullable",
    "-unsetDefault",
    "-lco",
    "SPATIAL_INDEX=NO",
    "-lco",
    f"FID={FID}",
    "-lco",
    f"GEOMETRY_NAME={GEOMETRY}",
    "-mapFieldType",
    TEXT_FOR_LISTS,
)
"""Options for the work file in runs that may skip features, which therefore cannot write them in groups."""
INTO_WORK_FILE = (*UNGROUPED, "-gt", "unlimited")
NOTHING_KNOWN = '{"noise": {}, "prefix": "", "guesses_types": false}'
"""For the program that states the facts about a file that is not an upload."""
TAIL_BYTES = 4096
LISTED = 50
AFTER_THE_END = b" \t\r\n\0\x1a"
"""White space, and characters with which old systems end texts."""
ADD = ("-update",)
CSV_DRIVER = "CSV"
DETOUR_DRIVER = "SQLite"
DETOUR_FILE = "detour.sqlite"
INTO_DETOUR = ("-f", DETOUR_DRIVER, *INTO_WORK_FILE[2:], "-lco", "LAUNDER=NO")
LABELS_FILE = "labels.gpkg"
SHEETS_FILE = "sheets.gpkg"
TABLES_FILE = "tables.json"
ROUNDED_FILE = "rounded.json"
PARQUET_READING = f"{jailed.__name__}.parquet_reading"
"""Named, not imported: it needs optional packages."""
TAKEN_FOR_WINDOWS = (
    "{what} does not say in which encoding its text is, and it is not UTF-8: Windows-1252 was assumed. {remedy} if "
    "letters are wrong."
)
LARGEST_WORKBOOK_BYTES = 1 << 20
"""Many larger ones would be read twice, because some of their content must be examined one by one."""
NO_SYSTEM = re.compile(r"Failed to process SRS")
ODD_LAYER_NAME = re.compile(r"layer name may not")
PLACES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "": ("EMPTY_STRING_AS_NULL=YES",),
        "xy": (f"X_POSSIBLE_NAMES={X}", f"Y_POSSIBLE_NAMES={Y}", "KEEP_GEOM_COLUMNS=NO", "EMPTY_STRING_AS_NULL=YES"),
        "xyz": (
            f"X_POSSIBLE_NAMES={X}",
            f"Y_POSSIBLE_NAMES={Y}",
            f"Z_POSSIBLE_NAMES={Z}",
            "KEEP_GEOM_COLUMNS=NO",
            "EMPTY_STRING_AS_NULL=YES",
        ),
        "wkt": (f"GEOM_POSSIBLE_NAMES={WKT}", "KEEP_GEOM_COLUMNS=NO", "EMPTY_STRING_AS_NULL=YES"),
    }
)
"""The open options with which the CSV driver finds the geometry."""
OURS = Reading(drivers=(CSV_DRIVER,))
"""How normalized tables are read."""
JAILED = tuple(module.__name__ for module in (delimited, sheets, database, relabel, lines, shape_records))


class WorkFile(msgspec.Struct, frozen=True):
    """What the facts do not contain: warnings, and the names of layers by table where they differ."""

    warnings: tuple[str, ...] = ()
    names: Mapping[str, str] = MappingProxyType({})
    facts: Facts | None = None
    """The facts, if the upload is held in memory; None if there is a work file."""
    cells: Mapping[str, Mapping[str, object]] = MappingProxyType({})
    """For each table with coordinate columns: the CSV that was read, its delimiter, and their original names."""
    claim: str = ""
    """The name of the system that the file gives for layers without a known one."""


class _Table(msgspec.Struct, frozen=True):
    """A table that one of our programs in the sandbox made. It is untrusted, so its position names its file."""

    name: Name
    places: Literal["", "xy", "xyz", "wkt"]
    delimiter: Annotated[str, Meta(min_length=1, max_length=1)]
    columns: Annotated[tuple[Name, ...], Meta(max_length=MAX_COLUMNS)]
    originals: Mapping[Literal["__x", "__y", "__z", "__wkt"], Name]
    others: Annotated[tuple[tuple[Name, Name], ...], Meta(max_length=MAX_COLUMNS)]
    srid: Annotated[int, Meta(ge=1, le=MAX_CODE)] | None
    renamed: Annotated[tuple[tuple[Name, Name], ...], Meta(max_length=MAX_COLUMNS)]
    finer: Annotated[Mapping[Name, Count], Meta(max_length=MAX_COLUMNS)]
    in_windows_1252: bool


TableNames = Annotated[tuple[Name, ...], Meta(max_length=MAX_LAYERS)]


class _Database(msgspec.Struct, frozen=True):
    """The tables of a database, and by column how many values are of another type than it declares."""

    tables: TableNames
    mistyped: Annotated[Mapping[Name, Count], Meta(max_length=MAX_COLUMNS * MAX_LAYERS)]


Tables = Annotated[tuple[_Table, ...], Meta(max_length=MAX_LAYERS)]
LayerNames = Annotated[dict[TableName, Name], Meta(max_length=MAX_LAYERS)]
Rounded = Annotated[dict[Name, Count], Meta(max_length=MAX_COLUMNS)]


async def read_into_work_file(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Fill the work file with the content of `source`.

    Raises:
        Rejection: the file cannot be read, or lacks the columns that `request` names.
    """
    reader = reading_of(source.format).reader
    if reader in _TABLE_READERS:
        return await _TABLE_READERS[reader](place, source, request)
    found = await _READERS[reader](place, source)
    if request.place_fields:
        unused = " and ".join(request.place_fields)
        ignored = f"{unused} was not used: {source.format.title} stores geometry, not coordinate columns."
        found = msgspec.structs.replace(found, warnings=(*found.warnings, ignored))
    return found


def open_options(*options: str) -> list[str]:
    """The driver's open options as arguments."""
    return [argument for option in options for argument in ("-oo", option)]


async def _read_single(place: Workplace, source: Source) -> WorkFile:
    """Read one file, and hold it in memory if possible."""
    reading = _reading(source)
    await run_blocking(partial(_require_end, source), inline=place.is_small)
    facts = await hold(place, reading, [Opening(staged_names(source)[0], reading.options)])
    return await _read_document(place, source) if facts is None else WorkFile(facts=facts)


async def _read_document(place: Workplace, source: Source) -> WorkFile:
    """Read one file with the layers that its driver reports."""
    await run_blocking(partial(_require_end, source), inline=place.is_small)
    return await _read_layers(place, _reading(source), staged_names(source)[0])


def _require_end(source: Source) -> None:
    """Refuse a truncated file if its format marks the end and the driver would not notice. Blocking."""
    trailer = reading_of(source.format).trailer
    if not trailer:
        return
    with source.path.open("rb") as file:
        file.seek(max(0, source.path.stat().st_size - TAIL_BYTES))
        tail = file.read().rstrip(AFTER_THE_END)
    if not tail.endswith(trailer):
        title = source.format.title
        raise Rejection(
            f"The file is not a valid {title} file: the mark {trailer.decode()} at its end is missing, so it is "
            "truncated, or of another kind than its extension says. Send the whole file."
        )


def _reading(source: Source) -> Reading:
    """How to read the file, with the options for this one."""
    reading = reading_of(source.format)
    return msgspec.structs.replace(reading, options=(*reading.options, *source.options))


async def _read_json(place: Workplace, source: Source) -> WorkFile:
    """Read a document, or a sequence and check that no line is missing."""
    if not source.prefix:
        return await _read_single(place, source)
    found = await _read_document(place, source)
    if source.prefix:
        await place.python(lines.__name__, staged_names(source)[0].removeprefix(source.prefix), WORK_FILE)
    return found


async def _read_esri_json(place: Workplace, source: Source) -> WorkFile:
    """Read a document whose system may have a code of Esri's, which the driver takes for one of EPSG's."""
    code = await run_blocking(partial(esri_code, source.path), inline=place.is_small)
    if not code:
        return await _read_single(place, source)
    system = f"ESRI:{code}"
    arguments = [*INTO_WORK_FILE, "-a_srs", system, WORK_FILE, staged_names(source)[0]]
    drivers = (*reading_of(source.format).drivers, WORK_DRIVER)
    if NO_SYSTEM.search(await place.ogr2ogr(arguments, drivers, tolerated=NO_SYSTEM)):
        await place.discard(WORK_FILE)
        read = await _read_document(place, source)
        return msgspec.structs.replace(read, claim=system)
    return WorkFile()


async def _read_layers(place: Workplace, reading: Reading, origin: str, layers: Sequence[str] = ()) -> WorkFile:
    arguments = [*INTO_WORK_FILE, *open_options(*reading.options), WORK_FILE, origin, *layers]
    drivers = (*reading.drivers, WORK_DRIVER)
    messages = await place.ogr2ogr(arguments, drivers, reading.environment, tolerated=ODD_LAYER_NAME)
    if not ODD_LAYER_NAME.search(messages):
        return WorkFile(tuple(find_renames(messages)))
    return await _read_odd_layers(place, reading, origin, layers)


async def _read_odd_layers(place: Workplace, reading: Reading, origin: str, layers: Sequence[str]) -> WorkFile:
    """Read layers whose names a GeoPackage refuses."""
    await place.discard(WORK_FILE)
    return await _add_relabelled(place, reading, origin, layers)


async def _add_relabelled(
    place: Workplace,
    reading: Reading,
    origin: str,
    layers: Sequence[str] = (),
    before: Mapping[str, str] = MappingProxyType({}),
) -> WorkFile:
    """Add layers to the work file, after those `before`, by way of plain SQLite, in which they are renamed."""
    arguments = [*INTO_DETOUR, *open_options(*reading.options), DETOUR_FILE, origin, *layers]
    messages = await place.ogr2ogr(arguments, (*reading.drivers, DETOUR_DRIVER), reading.environment)
    await place.python(relabel.__name__, DETOUR_FILE, TABLES_FILE, str(len(before)))
    names = await place.read_json(TABLES_FILE, LayerNames)
    if names:
        into = [*INTO_WORK_FILE, *(ADD if before else ()), "-oo", "LIST_ALL_TABLES=YES", WORK_FILE, DETOUR_FILE]
        await place.ogr2ogr([*into, *names], (DETOUR_DRIVER, WORK_DRIVER))
    await place.discard(DETOUR_FILE)
    return WorkFile(tuple(find_renames(messages)), {**before, **names})


async def _read_documents(place: Workplace, source: Source) -> WorkFile:
    """Several files, each with layers of its own, of which some may have the same name."""
    if len(source.parts) == 1:
        return await _read_single(place, source)
    reading = _reading(source)
    facts = await hold(place, reading, [Opening(name, reading.options) for name in staged_names(source)])
    if facts is not None:
        return WorkFile(facts=facts)
    read = WorkFile()
    for name in staged_names(source):
        added = await _add_relabelled(place, reading, name, before=read.names)
        read = WorkFile((*read.warnings, *added.warnings), added.names)
    return read


async def _read_parts(place: Workplace, source: Source) -> WorkFile:
    """Read several files, each as a layer."""
    reading = reading_of(source.format)
    names = {f"t{number}": part.layer for number, part in enumerate(source.parts)}
    for part, name in zip(source.parts, staged_names(source), strict=True):
        await require_match(place, part, name)
    encodings = [await _encoding(place, part) for part in source.parts]
    openings = [
        Opening(name, (*reading.options, *([f"ENCODING={encoding}"] if encoding else [])))
        for name, encoding in zip(staged_names(source), encodings, strict=True)
    ]
    warnings = tuple(
        TAKEN_FOR_WINDOWS.format(what=repr(shown(part.layer)), remedy="Send a .cpg with the name of its encoding")
        for part, encoding in zip(source.parts, encodings, strict=True)
        if encoding == NO_UNICODE
    )
    labels = 0

    async def count_labels(_: Session, layers: list[SeenLayer]) -> list[SeenLayer]:
        nonlocal labels
        labels = sum(layer.labels for layer in layers)
        return layers

    facts = await hold(place, reading, openings, count_labels)
    if facts is not None:
        return WorkFile((*warnings, *_label_warnings(labels)), names, facts)
    messages = []
    for number, opening in enumerate(openings):
        options = open_options(*opening.options)
        arguments = [*INTO_WORK_FILE, *(ADD if number else ()), *options, WORK_FILE, opening.name]
        drivers = (*reading.drivers, WORK_DRIVER)
        messages.append(await place.ogr2ogr([*arguments, "-nln", f"t{number}"], drivers, reading.environment))
    if reading.has_labels:
        labels = sum([await _count_labels(place, reading, opening) for opening in openings])
    return WorkFile((*warnings, *find_renames("\n".join(messages)), *_label_warnings(labels)), names)


async def _count_labels(place: Workplace, reading: Reading, opening: Opening) -> int:
    """How many features of a file are labels, of whose style the work file has nothing."""
    layer = PurePath(opening.name).stem
    query = f"SELECT COUNT(*) AS labels FROM {layer} WHERE OGR_STYLE LIKE 'LABEL(%'"  # noqa: S608 -- our name
    arguments = [*UNGROUPED, *open_options(*opening.options), "-sql", query, LABELS_FILE, opening.name]
    try:
        await place.ogr2ogr(arguments, (*reading.drivers, WORK_DRIVER), reading.environment)
        await place.python(facts_program.__name__, LABELS_FILE, NOTHING_KNOWN, TABLES_FILE)
        (found,) = (await place.read_json(TABLES_FILE, Facts)).layers
    finally:
        await place.discard(LABELS_FILE)
    return sum(int(field.total or 0) for field in found.fields)


def _label_warnings(labels: int) -> Iterator[str]:
    if labels:
        yield f"Texts of labels ({labels:,}) were left out; their positions and attributes were kept."


async def _encoding(place: Workplace, part: Part) -> str:
    """The encoding of a shapefile that does not record it, or may record a wrong one; "" if it is to be trusted."""
    dbf = part.files.get(".dbf")
    if dbf is None or ".cpg" in part.files:
        return ""
    return await run_blocking(partial(guess_encoding, dbf), inline=place.is_small)


async def _read_delimited(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Normalize the table in the run that will hold it, or else in a Python program."""
    file, delimiter = staged_names(source)[0], reading_of(source.format).delimiter
    table = await tabulate(place, file, Wanted(**_wanted_columns(request)), delimiter, OURS)
    if table is not None:
        return await _read_tables(place, request, [table])
    await place.python(delimited.__name__, file, TABLES_FILE, _wanted(request), delimiter)
    return await _read_written_tables(place, request)


async def _read_workbook(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    """Convert sheets to tables, and find the geometry of the tables."""
    reading = _reading(source)
    file, found = await prepare_workbook(place, staged_names(source)[0], source.parts[0].extension, reading)
    told = tuple(found.warnings())
    if place.input_bytes <= LARGEST_WORKBOOK_BYTES:
        placing = Placing(Wanted(**_wanted_columns(request)))
        facts = await hold(place, reading, [Opening(file)], placing)
        if facts is not None:
            _require_places(placing.tables, request)
            return WorkFile((*told, *_table_warnings(placing.tables)), facts=facts)
    elif place.session is not None:
        await place.session.abandon()
    read = await _read_layers(place, reading, file)
    await place.rename(WORK_FILE, SHEETS_FILE)
    tables = await _read_sheets(place, request)
    names = {table: read.names.get(name, name) for table, name in tables.names.items()}
    return msgspec.structs.replace(tables, warnings=(*told, *read.warnings, *tables.warnings), names=names)


async def _read_sheets(place: Workplace, request: ConversionRequest) -> WorkFile:
    await place.python(sheets.__name__, SHEETS_FILE, TABLES_FILE, _wanted(request))
    return await _read_written_tables(place, request)


def _wanted(request: ConversionRequest) -> str:
    """The columns that the request names, for the programs in the sandbox."""
    return json.dumps(_wanted_columns(request))


def _wanted_columns(request: ConversionRequest) -> dict[str, str]:
    return {field.removesuffix("Field"): name for field, name in request.place_fields.items()}


async def _read_written_tables(place: Workplace, request: ConversionRequest) -> WorkFile:
    """Read the tables that a program in the sandbox has written."""
    tables = await place.read_json(TABLES_FILE, Tables)
    if not tables:
        raise Rejection("The file holds no table, so there is nothing to convert.")
    return await _read_tables(place, request, tables)


async def _read_tables(place: Workplace, request: ConversionRequest, tables: Sequence[_Table | Table]) -> WorkFile:
    """Read the normalized tables, in which the columns with the geometry have fixed names."""
    _require_places(tables, request)
    names = {f"t{number}": table.name for number, table in enumerate(tables)}
    openings = [
        Opening(f"t{number}.csv", PLACES[table.places], table.srid, is_placed=bool(table.places))
        for number, table in enumerate(tables)
    ]
    facts = await hold(place, OURS, openings)
    if facts is not None:
        return WorkFile(tuple(_table_warnings(tables)), names, facts)
    messages = []
    for number, opening in enumerate(openings):
        options = open_options(*opening.options)
        system = ("-a_srs", f"EPSG:{opening.srid}") if opening.srid is not None else ()
        arguments = [*INTO_WORK_FILE, *(ADD if number else ()), *options, *system, WORK_FILE, opening.name]
        messages.append(await place.ogr2ogr([*arguments, "-nln", f"t{number}"], (CSV_DRIVER, WORK_DRIVER)))
    return WorkFile(
        (*_table_warnings(tables), *find_renames("\n".join(messages))),
        names,
        None,
        {
            f"t{number}": {"file": f"t{number}.csv", "delimiter": table.delimiter, "originals": dict(table.originals)}
            for number, table in enumerate(tables)
            if table.places
        },
    )


def _require_places(tables: Sequence[_Table | Table], request: ConversionRequest) -> None:
    """Refuse tables without geometry columns if the request implies that there are some."""
    if any(table.places for table in tables) or not (request.place_fields or request.source_epsg is not None):
        return
    columns = listed(quotes(name for table in tables for name in table.columns), LISTED)
    if request.place_fields:
        named = " and ".join(f"{field}={shown(name)!r}" for field, name in request.place_fields.items())
        raise Rejection(f"The table has no such columns: {named}. Its columns are {columns}.")
    alike = next(_named_like_coordinates(tables), "")
    remedy = alike or "Name them in xField and yField, or in wktField."
    raise Rejection(
        f"sourceEpsg was sent, but no columns of coordinates were found. {remedy} Leave sourceEpsg out to convert the "
        f"table without geometry. The columns are {columns}."
    )


def _named_like_coordinates(tables: Sequence[_Table | Table]) -> Iterator[str]:
    """What to do about columns that would be coordinates by their names, if their cells were numbers."""
    for table in tables:
        pairs = [] if table.places else find_pairs(list(enumerate(table.columns)))
        if pairs:
            x, y = (repr(shown(table.columns[at])) for at in pairs[0])
            yield (
                f"The columns {x} and {y} are named like coordinates, but most of their cells are no decimal numbers, "
                "so they became no points. Write 50.5 for 50°30'N, and -7.25 for 7°15'W."
            )


def _table_warnings(tables: Sequence[_Table | Table]) -> Iterator[str]:
    if any(table.in_windows_1252 for table in tables):
        yield TAKEN_FOR_WINDOWS.format(what="The file", remedy="Send the file in UTF-8")
    yield from _named_like_coordinates(tables)
    renamed = [pair for table in tables for pair in table.renamed]
    if renamed:
        pairs = listed([f"{shown(old)!r} became {shown(new)!r}" for old, new in renamed], LISTED)
        yield f"Names of columns are repeated in the header, or have line ends: {pairs}."
    yield from _rounded_warnings({name: count for table in tables for name, count in table.finer.items()})
    for table in tables:
        if table.others:
            x, y = (shown(name) for ours, name in table.originals.items() if ours in {X, Y})
            others = ", ".join(f"{shown(a)!r} and {shown(b)!r}" for a, b in table.others[:LISTED])
            yield (
                f"The coordinates were taken from {x!r} and {y!r}. {others} could be coordinates too and stayed data; "
                "send xField and yField to choose."
            )


async def _read_database(place: Workplace, source: Source) -> WorkFile:
    """Read the tables that hold data; the driver lists no plain tables beside spatial ones."""
    await place.python(database.__name__, staged_names(source)[0], TABLES_FILE)
    found = await place.read_json(TABLES_FILE, _Database)
    names = found.tables
    readable = [name for name in names if name.isprintable() and not name.startswith(("-", "@"))]
    if not readable:
        raise Rejection("The database holds no table of data, so there is nothing to convert.")
    read = await _read_layers(place, reading_of(source.format), staged_names(source)[0], readable)
    return msgspec.structs.replace(read, warnings=(*read.warnings, *_mistyped_warnings(found.mistyped)))


async def _read_geopackage(place: Workplace, source: Source) -> WorkFile:
    """Read all layers, and count values that are not of the type that their columns declare."""
    reading, check = _reading(source), TypeCheck()
    facts = await hold(place, reading, [Opening(staged_names(source)[0], reading.options)], check)
    if facts is not None:
        return WorkFile(tuple(_mistyped_warnings(check.mistyped)), facts=facts)
    read = await _read_document(place, source)
    await place.python(database.__name__, staged_names(source)[0], TABLES_FILE, database.GEOPACKAGE)
    found = await place.read_json(TABLES_FILE, _Database)
    return msgspec.structs.replace(read, warnings=(*read.warnings, *_mistyped_warnings(found.mistyped)))


def _mistyped_warnings(mistyped: Mapping[str, int]) -> Iterator[str]:
    if mistyped:
        yield (
            f"{values_of(mistyped, LISTED)} are of other types than the database declares for the "
            "columns; they may have become 0 or empty. Declare these columns as TEXT to keep them."
        )


async def _read_parquet(place: Workplace, source: Source, request: ConversionRequest) -> WorkFile:
    if set(reading_of(source.format).drivers) & set(place.host.drivers):
        return await _read_document(place, source)
    await place.python(PARQUET_READING, staged_names(source)[0], WORK_FILE, SHEETS_FILE, ROUNDED_FILE)
    rounded = tuple(_rounded_warnings(await place.read_json(ROUNDED_FILE, Rounded)))
    found = WorkFile() if await place.has(WORK_FILE) else await _read_sheets(place, request)
    return msgspec.structs.replace(found, warnings=(*rounded, *found.warnings))


def _rounded_warnings(rounded: Mapping[str, int]) -> Iterator[str]:
    if rounded:
        yield (
            f"{values_of(rounded, LISTED)} lost digits: times are kept with "
            "millisecond precision, decimal numbers to the fifteenth digit."
        )


_READERS: Mapping[Reader, Callable[[Workplace, Source], Awaitable[WorkFile]]] = MappingProxyType(
    {
        Reader.OGR: _read_single,
        Reader.DOCUMENT: _read_json,
        Reader.LINES: _read_json,
        Reader.PARTS: _read_parts,
        Reader.DOCUMENTS: _read_documents,
        Reader.DATABASE: _read_database,
        Reader.GEOPACKAGE: _read_geopackage,
        Reader.ESRI_JSON: _read_esri_json,
    }
)
_TABLE_READERS: Mapping[Reader, Callable[[Workplace, Source, ConversionRequest], Awaitable[WorkFile]]] = (
    MappingProxyType(
        {
            Reader.DELIMITED: _read_delimited,
            Reader.WORKBOOK: _read_workbook,
            Reader.PARQUET: _read_parquet,
        }
    )
)
"""The readers of files whose geometry may be in ordinary columns, which the request may name."""
