"""The work file: a GeoPackage that holds an upload whatever its format was, and how layers get into it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from service.engine.diagnostics import find_changes, former_types, has_other_texts
from service.engine.jailed import facts as facts_program
from service.engine.jailed import relabel, repeatable
from service.engine.jailed.gpkg import FID, GEOMETRY
from service.engine.session_loading import Opening, hold
from service.engine.workspace import UNDETERMINED, WORK_FILE, Workplace
from service.errors import Rejection
from service.formats.facts import MAX_COLUMNS, MAX_LAYERS, Facts, FormerType, Name, is_table_name
from service.formats.format import Reading
from service.formats.names import counted, values_of

WORK_DRIVER = "GPKG"
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
)
"""Options for the work file in runs that may skip features, which therefore cannot write them in groups."""
INTO_WORK_FILE = (*UNGROUPED, "-gt", "unlimited")
INTO_TABLES = ("-f", WORK_DRIVER, "-unsetFid", "-gt", "unlimited", "-append", "-fieldmap", "identity")
"""Options for tables that are there: by their names, ignoring case, columns would be taken for others."""
NOTHING_KNOWN = '{"noise": {}, "prefix": "", "guesses_types": false}'
"""For the program that states the facts about a file that is not an upload."""
ADD = ("-update",)
DETOUR_DRIVER = "SQLite"
DETOUR_FILE = "detour.sqlite"
INTO_DETOUR = ("-f", DETOUR_DRIVER, *INTO_WORK_FILE[2:], "-lco", "LAUNDER=NO")
NEEDS_DETOUR = re.compile(r"layer name may not|does not natively support \w*List type")
"""Messages about names of layers that a GeoPackage refuses, and lists, of which older versions make no JSON in it."""
NO_SYSTEM = re.compile(r"Failed to process SRS")
NO_BOUNDS = re.compile(
    r"\A(?:(?!ERROR)[^\n]*+\n"
    r"|ERROR 1: sqlite3_exec\(UPDATE gpkg_contents SET min_x [^\n]*no such column: -?(?:Inf|NaN)\n*+)++\Z",
    re.IGNORECASE,
)
"""Messages that nothing is wrong but the bounds of a table, which coordinates that are infinite do not have."""
NO_SYSTEM_OR_BOUNDS = re.compile(f"{NO_SYSTEM.pattern}|{NO_BOUNDS.pattern}", re.IGNORECASE)
REPEATED = re.compile(r"UNIQUE constraint failed")
"""The message about a value that the file declares to be unique, and that is not, at least as it is read."""
READ_OTHERWISE = re.compile(f"{NEEDS_DETOUR.pattern}|{REPEATED.pattern}")
OR_WITHOUT_SYSTEM = re.compile(f"{READ_OTHERWISE.pattern}|{NO_SYSTEM.pattern}")
COLUMNS_FIRST = ("-splitlistfields",)
"""Has columns read, of which none are lists, before GDAL takes what is said meanwhile for a failure, as it does since
3.13.2."""
NO_ROWS = ("-limit", "0")
LISTED = 50
"""How many names a message lists."""
TAKEN_FOR_WINDOWS = (
    "{what} does not declare the encoding of its text, which is not UTF-8: Windows-1252 was assumed. {remedy} if "
    "letters are wrong."
)
FormerTypes = Annotated[dict[Name, FormerType], Meta(max_length=MAX_COLUMNS)]
LayerNames = Annotated[dict[Name, Name], Meta(max_length=MAX_LAYERS)]


class WorkFile(msgspec.Struct, frozen=True):
    """What the facts do not contain: warnings, and the names of layers by table where they differ."""

    warnings: tuple[str, ...] = ()
    names: Mapping[str, str] = {}
    facts: Facts | None = None
    """The facts, if the upload is held in memory; None if there is a work file."""
    logical: Mapping[str, Sequence[int]] = {}
    """By table: the positions of columns whose texts stand for true and false."""
    cells: Mapping[str, Mapping[str, object]] = {}
    """For each table with coordinate columns: the CSV that was read, its delimiter, and their original names."""
    system: str = ""
    """The name of the system that the file gives for layers without a known one."""
    has_other_texts: bool = False
    """Whether the work file has texts that are not UTF-8."""
    rounded: str = ""
    """What to tell, with `columns`, if there are columns of floating-point numbers beyond 53 bits; "" if nothing."""
    is_unplaced: bool = False
    """Whether a table has no geometries, and the warnings do not say what to do about it."""
    truths: int = 0
    """How many cells of a workbook hold true or false."""
    was: Mapping[str, FormerType] = {}
    """By column: the type that reading has changed; columns of this name that have kept theirs are spared."""
    assumes_system: bool = False
    """Whether the driver assumes a system that the file does not record."""
    tells_parts: bool = False
    """Whether the warnings tell of parts of geometries without any position."""


def open_options(*options: str) -> list[str]:
    """The driver's open options as arguments."""
    return [argument for option in options for argument in ("-oo", option)]


def told_of(found: object, sentences: Mapping[str, str]) -> Iterator[str]:
    """The sentences about those members of `found` that are not 0 or empty.

    A member is a number, or the numbers of values by column; sentences may name others of `found`, as {0.first}.
    """
    for member, sentence in sentences.items():
        if counts := getattr(found, member):
            if isinstance(counts, int):
                yield sentence.format(found, count=f"{counts:,}", tables=counted(counts, "table"))
            else:
                yield sentence.format(found, values=values_of(counts, LISTED))


async def facts_of(place: Workplace, gpkg: str) -> Facts:
    """The facts about one of our GeoPackages other than the work file.

    Raises:
        Rejection: determining them exceeds the limits.
    """
    return await place.call(facts_program.__name__, Facts, gpkg, NOTHING_KNOWN)


async def add_table(place: Workplace, reading: Reading, number: int, opening: Opening) -> tuple[str, str]:
    """Add the layer of a file to the work file as a table with this number.

    The first one, 0, makes the work file. Returns the messages, and the system of the opening if that is not known.

    Raises:
        Rejection: the file cannot be read.
    """
    system = f"EPSG:{opening.srid}" if opening.srid is not None else ""
    messages = await _add_table(place, reading, number, opening, system)
    if not (system and NO_SYSTEM.search(messages)):
        return messages, ""
    return await _add_table(place, reading, number, opening, ""), system


async def _add_table(place: Workplace, reading: Reading, number: int, opening: Opening, system: str) -> str:
    assigned, tolerated = (("-a_srs", system), NO_SYSTEM_OR_BOUNDS) if system else ((), NO_BOUNDS)
    arguments = [*INTO_WORK_FILE, *(ADD if number else ()), *open_options(*opening.options), *assigned]
    arguments += [WORK_FILE, opening.name, "-nln", f"t{number}"]
    return await place.ogr2ogr(arguments, (*reading.drivers, WORK_DRIVER), reading.environment, tolerated=tolerated)


async def hold_or_read(place: Workplace, reading: Reading, origin: str, layers: Sequence[str] = ()) -> WorkFile:
    """Hold layers of a file in memory if possible, all or those named; otherwise as `read_layers`."""
    facts = await hold(place, reading, [Opening(origin, reading.options, layers=tuple(layers))])
    return WorkFile(facts=facts) if facts is not None else await read_layers(place, reading, origin, layers)


async def read_layers(
    place: Workplace, reading: Reading, origin: str, layers: Sequence[str] = (), *, system: str = ""
) -> WorkFile:
    """Read the layers of one of our files or the client's, all or those named; `system` is theirs if it is known.

    Raises:
        Rejection: the file cannot be read.
    """
    first = COLUMNS_FIRST if reading.defers_columns else ()
    options = [*first, *open_options(*reading.options), *(("-a_srs", system) if system else ())]
    drivers = (*reading.drivers, WORK_DRIVER)
    arguments = [*INTO_WORK_FILE, *options, WORK_FILE, origin, *layers]
    tolerated = OR_WITHOUT_SYSTEM if system else READ_OTHERWISE
    messages = await place.ogr2ogr(arguments, drivers, reading.environment, tolerated=tolerated)
    if REPEATED.search(messages):
        await place.discard(WORK_FILE)
        messages = await place.ogr2ogr([*arguments, *NO_ROWS], drivers, reading.environment)
        await place.python(repeatable.__name__, WORK_FILE)
        arguments = [*INTO_TABLES, *options, WORK_FILE, origin, *layers]
        messages += await place.ogr2ogr(arguments, drivers, reading.environment)
    if not tolerated.search(messages):
        was = former_types(messages)
        return WorkFile(tuple(find_changes(messages)), has_other_texts=has_other_texts(messages), was=was)
    await place.discard(WORK_FILE)
    if system and NO_SYSTEM.search(messages):
        return msgspec.structs.replace(await read_layers(place, reading, origin, layers), system=system)
    read = await add_relabelled(place, reading, origin, layers, system=system)
    return msgspec.structs.replace(read, was=former_types(messages))


async def add_relabelled(
    place: Workplace,
    reading: Reading,
    origin: str,
    layers: Sequence[str] = (),
    before: Mapping[str, str] = {},
    *,
    system: str = "",
) -> WorkFile:
    """Add layers to the work file, after those `before`, by way of plain SQLite, in which they are renamed.

    Its driver writes lists as JSON.
    """
    options = [*open_options(*reading.options), *(("-a_srs", system) if system else ())]
    arguments = [*INTO_DETOUR, *options, DETOUR_FILE, origin, *layers]
    messages = await place.ogr2ogr(arguments, (*reading.drivers, DETOUR_DRIVER), reading.environment)
    names = await place.call(relabel.__name__, LayerNames, DETOUR_FILE, str(len(before)))
    if not all(map(is_table_name, names)):
        raise Rejection(UNDETERMINED)
    if names:
        into = [*INTO_WORK_FILE, *(ADD if before else ()), "-oo", "LIST_ALL_TABLES=YES", WORK_FILE, DETOUR_FILE]
        await place.ogr2ogr([*into, *names], (DETOUR_DRIVER, WORK_DRIVER))
    await place.discard(DETOUR_FILE)
    return WorkFile(tuple(find_changes(messages)), {**before, **names})
