"""Reads files whose layers their drivers report: one file, several with layers of their own, or one layer each."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePath

import msgspec

from service.engine.diagnostics import find_changes, former_types, has_other_texts
from service.engine.jailed import lines, mif_lines, parallels
from service.engine.reading.shapefiles import how_to_read
from service.engine.reading.work_file import (
    UNGROUPED,
    WORK_DRIVER,
    WorkFile,
    add_relabelled,
    add_table,
    facts_of,
    hold_or_read,
    open_options,
    read_layers,
)
from service.engine.session import Session
from service.engine.session_facts import SeenLayer, with_logical
from service.engine.session_loading import Opening, hold
from service.engine.workspace import INPUT, WORK_FILE, Workplace, staged_names
from service.errors import Rejection
from service.formats.format import Reading, reading_of
from service.formats.mid_values import clock_times, mid_warnings
from service.formats.mif_charset import affine_warning, charset_warning, curves_warning, origin_warning
from service.formats.mif_lines import has_shared_lines
from service.formats.opened import opened
from service.formats.source import Part, Source
from service.formats.tab_objects import tab_warnings

TAIL_BYTES = 4096
AFTER_THE_END = b" \t\r\n\0\x1a"
"""White space, and characters that mark the end of texts on old systems."""
LABELS_FILE, MENDED_FILE = "labels.gpkg", "mended"


async def read_single(place: Workplace, source: Source) -> WorkFile:
    """Read one file, and hold it in memory if possible."""
    reading = reading_with_options(source)
    await place.look(partial(_require_end, source))
    return await hold_or_read(place, reading, staged_names(source)[0])


async def read_document(place: Workplace, source: Source) -> WorkFile:
    """Read one file with the layers that its driver reports."""
    await place.look(partial(_require_end, source))
    return await read_layers(place, reading_with_options(source), staged_names(source)[0])


def _require_end(source: Source) -> None:
    """Refuse a truncated file if its format marks the end and the driver would not notice. Blocking."""
    trailer = reading_of(source.format).trailer
    if not trailer:
        return
    with opened(source.path) as file:
        file.seek(max(0, source.path.stat().st_size - TAIL_BYTES))
        tail = file.read().rstrip(AFTER_THE_END)
    if not tail.endswith(trailer):
        title = source.format.title
        raise Rejection(
            f"The file is not a valid {title} file: the mark {trailer.decode()} at its end is missing, so it is "
            "truncated, or not what its extension says. Send the whole file."
        )


def reading_with_options(source: Source) -> Reading:
    """How to read the file, with the options for this one."""
    reading = reading_of(source.format)
    return msgspec.structs.replace(reading, options=tuple(dict.fromkeys((*reading.options, *source.options))))


async def read_json(place: Workplace, source: Source) -> WorkFile:
    """Read a document, or a sequence and check that no line is missing."""
    if not source.prefix:
        return await read_single(place, source)
    found = await read_document(place, source)
    await place.python(lines.__name__, staged_names(source)[0].removeprefix(source.prefix), WORK_FILE)
    return found


async def read_documents(place: Workplace, source: Source) -> WorkFile:
    """Several files, each with layers of its own, of which some may have the same name."""
    if len(source.parts) == 1:
        return await read_single(place, source)
    reading = reading_with_options(source)
    facts = await hold(place, reading, [Opening(name, reading.options) for name in staged_names(source)])
    if facts is not None:
        return WorkFile(facts=facts)
    read = WorkFile()
    for name in staged_names(source):
        added = await add_relabelled(place, reading, name, before=read.names)
        read = WorkFile((*read.warnings, *added.warnings), added.names)
    return read


async def read_parts(place: Workplace, source: Source) -> WorkFile:
    """Read several files, each as a layer."""
    reading = reading_of(source.format)
    names = {f"t{number}": part.layer for number, part in enumerate(source.parts)}
    staged = zip(source.parts, staged_names(source), strict=True)
    ways = [await how_to_read(place, part, reading, name) for part, name in staged]
    openings = [
        Opening(name, (*reading.options, *way.options), way.srid)
        for name, way in zip(staged_names(source), ways, strict=True)
    ]
    environments = [{**reading.environment, **way.environment} for way in ways]
    warnings = tuple(told for way in ways for told in way.warnings)
    for number, part in enumerate(source.parts):
        warnings += await _mapinfo_warnings(place, part, reads_logical=place.host.is_of(reading.reads_logical))
        await _break_lines(place, part, number)
        if place.host.is_of(reading.loses_unit):
            await _swap_parallels(place, part, number)
    labels = 0

    logical = {f"t{number}": way.logical for number, way in enumerate(ways)}

    async def count_labels(_: Session, layers: list[SeenLayer]) -> list[SeenLayer]:
        nonlocal labels
        labels = sum(layer.labels for layer in layers)
        return [with_logical(layer, logical.get(layer.table, ())) for layer in layers]

    facts = None
    if all(environment == environments[0] for environment in environments):
        held = msgspec.structs.replace(reading, environment=environments[0])
        facts = await hold(place, held, openings, count_labels)
    system = ways[0].system if len(ways) == 1 else ""
    if facts is not None:
        return WorkFile((*warnings, *_label_warnings(labels)), names, facts, system=system)
    messages = []
    for number, (opening, environment) in enumerate(zip(openings, environments, strict=True)):
        own = msgspec.structs.replace(reading, environment=environment)
        told, unknown = await add_table(place, own, number, opening)
        system = system or unknown
        messages.append(told)
    for number, part in enumerate(source.parts):
        if ".shp" not in part.files:  # the work file does not say of which texts the driver made these
            place.clock_times[f"t{number}"] = await place.look(partial(clock_times, part.path))
    if reading.has_labels:
        labels = sum([await _count_labels(place, reading, opening) for opening in openings])
    every = "\n".join(messages)
    changes = (
        *warnings,
        *find_changes(every, values=not source.parts[0].files.keys() & {".dbf"}),
        *_label_warnings(labels),
    )
    texts, was = has_other_texts(every), former_types(every)
    return WorkFile(changes, names, logical=logical, has_other_texts=texts, was=was, system=system)


async def _count_labels(place: Workplace, reading: Reading, opening: Opening) -> int:
    """How many features of a file are labels, of whose style the work file has nothing.

    A column of that name, which need not be of texts, hides the style.
    """
    layer = PurePath(opening.name).stem
    style = "CAST(OGR_STYLE AS CHARACTER)"
    query = f"SELECT COUNT(*) AS labels FROM {layer} WHERE {style} LIKE 'LABEL(%'"  # noqa: S608 -- our name
    arguments = [*UNGROUPED, *open_options(*opening.options), "-sql", query, LABELS_FILE, opening.name]
    try:
        await place.ogr2ogr(arguments, (*reading.drivers, WORK_DRIVER), reading.environment)
        (found,) = (await facts_of(place, LABELS_FILE)).layers
    finally:
        await place.discard(LABELS_FILE)
    return sum(int(field.total or 0) for field in found.fields)


def _label_warnings(labels: int) -> Iterator[str]:
    if labels:
        yield f"Texts of labels ({labels:,}) were left out; their positions and attributes were kept."


async def _break_lines(place: Workplace, part: Part, number: int) -> None:
    """Have the driver read a copy of a .mif if parts of its objects share lines; raises as `has_shared_lines`."""
    mif = part.files.get(".mif")
    if mif is not None and await place.look(partial(has_shared_lines, mif)):
        await _mend(place, mif_lines.__name__, f"{INPUT}{number}.mif")


async def _swap_parallels(place: Workplace, part: Part, number: int) -> None:
    """Have the driver read a copy of what records the system of a table if it may mistake its unit."""

    def is_swapped(file: Path) -> bool:
        with opened(file) as content:
            head = content.read(parallels.HEAD_BYTES)
        return parallels.swapped(head) != head

    for extension in part.files.keys() & {".map", ".mif"}:
        if await place.look(partial(is_swapped, part.files[extension])):
            await _mend(place, parallels.__name__, f"{INPUT}{number}{extension}")


async def _mend(place: Workplace, program: str, name: str) -> None:
    """Put the copy of a staged file that our program makes in its place."""
    await place.python(program, name, MENDED_FILE)
    await place.discard(name)
    await place.rename(MENDED_FILE, name)


async def _mapinfo_warnings(place: Workplace, part: Part, *, reads_logical: bool) -> tuple[str, ...]:
    """What to tell of a .mif and its .mid, or of a .tab and the files beside it."""
    mif, mid = part.files.get(".mif"), part.files.get(".mid")
    if ".tab" in part.files:
        return await place.look(lambda: tuple(tab_warnings(part)))
    if mif is None:
        return ()

    def told() -> tuple[str, ...]:
        of_mif = tuple(filter(None, [affine_warning(mif), origin_warning(mif), curves_warning(mif)]))
        if mid is None:
            return of_mif
        values = mid_warnings(mif, mid, part.layer, reads_logical=reads_logical)
        return (*filter(None, [charset_warning(mif, mid)]), *of_mif, *values)

    return await place.look(told)
