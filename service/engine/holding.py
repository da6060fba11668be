"""Holds an upload in the memory of a session's open run, in place of the work file."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from sandbox.verdict import Ending
from service.engine.diagnostics import INCOMPLETE, MISREAD, UNDEFINED_TYPE, UNREAD_GEOMETRY, EngineDefect
from service.engine.editing import shaped_tables
from service.engine.environment import MEMORY_DRIVERS, VIRTUAL_DRIVER
from service.engine.reading.work_file import WORK_DRIVER
from service.engine.seen import SAME, Seen, SeenLayer, changes_of, facts_of
from service.engine.session import Session, SessionOver
from service.engine.workspace import WORK_FILE, Workplace
from service.formats.facts import Facts
from service.formats.format import Format, Reading, Writer, writing_of
from service.formats.plan import ConversionPlan

LARGEST_BYTES = 96 << 20
"""Larger uploads go through the work file; in memory, they would take more than the converter itself."""
DETOURS: Mapping[Writer, tuple[str, ...]] = {Writer.WORKBOOK: ("CSV", VIRTUAL_DRIVER)}
"""The drivers that a writer needs in addition to the target's."""
HELD = "held"
"""The name of what is held on command lines."""
ELEVATION = "elevation"
"""The type of a column that gets the third coordinate of points."""
TOO_LONG = frozenset({Ending.WALL_TIME, Ending.CPU_TIME})
"""Endings of runs whose work would take as long in any other run."""
NEED_WORK_FILE = (INCOMPLETE, MISREAD, UNDEFINED_TYPE, UNREAD_GEOMETRY)
"""Messages about what only the ways to the work file mend or report."""
T = TypeVar("T")
Finish = Callable[[Session, list[SeenLayer]], Awaitable[list[SeenLayer] | None]]
"""Changes what is held before it is inspected."""


class Opening(msgspec.Struct, frozen=True):
    """A file to open, and the EPSG code of its system if the file cannot record it."""

    name: str
    options: tuple[str, ...] = ()
    srid: int | None = None
    is_placed: bool = False
    """Whether every row must have a geometry."""
    layers: tuple[str, ...] = ()
    """The layers to read; all if there are none."""


def drivers_for(target: Format) -> tuple[str, ...]:
    """The drivers to register to hold an upload and write it as `target`."""
    writing = writing_of(target)
    rereads = writing.reread.drivers if writing.reread is not None else ()
    return (*MEMORY_DRIVERS, writing.driver, *DETOURS.get(writing.writer, ()), *rereads, WORK_DRIVER)


def environment_for(target: Format) -> Mapping[str, str]:
    """The environment that rereading `target` requires."""
    reread = writing_of(target).reread
    return reread.environment if reread is not None else {}


async def hold(
    place: Workplace, reading: Reading, openings: Sequence[Opening], finish: Finish | None = None
) -> Facts | None:
    """Read `openings` into memory and return the facts about them; None if the work file is needed instead.

    The run may be open already, with what reads them. `finish` may change the layers that are held; it returns None if
    the work file is needed.

    Raises:
        SessionOver: it took too long, as it would with the work file.
    """

    async def load(session: Session) -> Facts | None:
        layers = await _load(session, reading, openings)
        if layers is not None and finish is not None:
            layers = await finish(session, layers)
        changes = None if layers is None else changes_of(layers, reading)
        if layers is None or changes is None:
            return None
        session.changes = changes
        session.held = {
            layer.table: [(place, column.name, SAME) for place, column in enumerate(layer.columns)] for layer in layers
        }
        return facts_of(layers, changes, reading)

    return await in_open_run(place, reading, load)


async def in_open_run(place: Workplace, reading: Reading, ask: Callable[[Session], Awaitable[T | None]]) -> T | None:
    """What `ask` learns from the run that is to hold the upload, and is begun unless it is open.

    None if there is none with room for the upload, or it failed, or `ask` returns None: no run is open then, and the
    same has to be done without one.

    Raises:
        SessionOver: it took too long, as it would in any other run.
    """
    session = place.session
    if session is None or not session.drivers or place.input_bytes > LARGEST_BYTES:
        return None
    if place.host.spare_for(reading.drivers):
        return None
    try:
        if not session.is_open:
            begin(place, session, reading.drivers, reading)
        found = await ask(session)
    except SessionOver as over:
        if over.verdict.ending in TOO_LONG:
            raise
        return None
    if found is None:
        await session.abandon()
    return found


def begin(place: Workplace, session: Session, drivers: Sequence[str], reading: Reading) -> None:
    """Start the run that is held open."""
    place.begin(session, (*drivers, *session.drivers), {**reading.environment, **session.environment})


async def _load(session: Session, reading: Reading, openings: Sequence[Opening]) -> list[SeenLayer] | None:
    found: list[SeenLayer] = []
    for opening in openings:
        load = ("load", str(opening.srid or ""), *opening.layers)
        opened = await session.open(opening.name, reading.drivers, opening.options, then=load)
        if not opened.ok:
            return None
        seen = await session.ask(Seen, *load)
        messages = opened.messages + seen.messages
        if not seen.ok or any(pattern.search(messages) for pattern in NEED_WORK_FILE):
            return None
        if opening.is_placed and any(layer.geometries != layer.features for layer in seen.layers):
            return None
        found += seen.layers
    return found


def needs_work_file(plan: ConversionPlan) -> bool:
    """Whether `plan` requires the work file, because it uses SQL or edits."""
    split = any(dataset.only_types or dataset.lacks_nulls or dataset.linearise for dataset in plan.datasets)
    has_empty_sheet = plan.writing.writer is Writer.WORKBOOK and not all(dataset.features for dataset in plan.datasets)
    edited = plan.leaves_out_control or plan.guards_texts or plan.gathers_lines
    return split or has_empty_sheet or edited or plan.keeps_coordinates or _names_geometry(plan) or _mixes_tracks(plan)


def _names_geometry(plan: ConversionPlan) -> bool:
    """Whether the output shows another name of the geometry column than the one that its driver chooses."""
    return plan.writing.shows_geometry_name and plan.geometry_name != plan.writing.geometry_names[0]


def _mixes_tracks(plan: ConversionPlan) -> bool:
    """Whether points and lines, or several layers, go into one file whose layers have fixed names."""
    families = [dataset.layer.families for dataset in plan.datasets]
    return plan.writing.writer is Writer.TRACKS and [len(found) for found in families] != [1]


async def shape(session: Session, plan: ConversionPlan) -> None:
    """Give what is held the names and columns of `plan`; other columns are left out.

    Raises:
        EngineDefect: this failed.
    """
    for shaped in shaped_tables(plan):
        kept = [column for column in session.changes[shaped.table] if column[1] in shaped.columns]
        columns = [(place, shaped.columns[column], kind) for place, column, kind in kept]
        if shaped.elevation:
            columns.append((0, shaped.elevation, ELEVATION))
        await _alter(session, shaped.table, shaped.name, columns, is_copied=plan.writing.shows_geometry_name)


async def save(place: Workplace, session: Session, arguments: Sequence[str]) -> None:
    """Save what is held to the work file and end the run.

    Raises:
        Rejection: there is not enough space for it.
    """
    place.held_name = HELD
    await place.ogr2ogr([*arguments, WORK_FILE, HELD], ())
    await session.finish()


async def tidy(session: Session) -> None:
    """Keep only the columns that are data in what is held."""
    for table, columns in session.changes.items():
        await _alter(session, table, table, columns)


async def _alter(
    session: Session, table: str, name: str, columns: Sequence[tuple[int, str, str]], *, is_copied: bool = False
) -> None:
    """Do so if anything changes. `is_copied` ensures that the table is in memory, where its geometry has no name."""
    if table == name and columns == session.held[table] and not is_copied:
        return
    done = await session.alter(table, name, columns)
    if not done.ok:
        raise EngineDefect(f"a table could not be altered: {done.messages}")
