"""Holds an upload in the memory of a session's open run, in place of the work file."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

from sandbox.verdict import Ending
from service.blocking import run_for_columns
from service.engine.diagnostics import INCOMPLETE, LONG_GAP, MISREAD, TOO_MANY_LAYERS, UNDEFINED_TYPE, UNREAD_GEOMETRY
from service.engine.session import Session, SessionOver
from service.engine.session_facts import SAME, Seen, SeenLayer, changes_of, facts_of
from service.engine.workspace import Workplace
from service.errors import Rejection
from service.formats.facts import Facts, FieldType, require_short_names
from service.formats.format import Reading

LARGEST_BYTES = 96 << 20
"""Larger uploads go through the work file; in memory, they would take more than the converter itself."""
PADDED_TIMES = 3
"""How much larger they may be where blanks fill most texts, which take nothing in memory."""
TOO_LONG = frozenset({Ending.WALL_TIME, Ending.CPU_TIME})
"""Endings of runs whose work would take as long in any other run."""
NEED_WORK_FILE = (INCOMPLETE, LONG_GAP, MISREAD, UNDEFINED_TYPE, UNREAD_GEOMETRY)
"""Messages about what only the ways to the work file mend or report."""
T = TypeVar("T")
Finish = Callable[[Session, list[SeenLayer]], Awaitable[list[SeenLayer] | None]]
"""Changes what is held before it is inspected."""
Find = Callable[[Session], Awaitable[Sequence[str] | None]]
"""Finds the layers to read in the file that is open."""


class Opening(msgspec.Struct, frozen=True):
    """A file to open, and the EPSG code of its system if the file cannot record it."""

    name: str
    options: tuple[str, ...] = ()
    srid: int | None = None
    is_placed: bool = False
    """Whether every row must have a geometry, or as many as are `placed`."""
    placed: int | None = None
    layers: tuple[str, ...] = ()
    """The layers to read; all if there are none."""


async def hold(
    place: Workplace,
    reading: Reading,
    openings: Sequence[Opening],
    finish: Finish | None = None,
    find: Find | None = None,
) -> Facts | None:
    """Read `openings` into memory and return the facts about them; None if the work file is needed instead.

    The run may be open already, with what reads them. `find` names the layers of each that are read, `finish` may
    change those that are held; they return None if the work file is needed.

    Raises:
        SessionOver: it took too long, as it would with the work file.
        Rejection: it has too many layers, or their columns names that are too long.
    """

    async def load(session: Session) -> Facts | None:
        layers = await _load(place, session, reading, openings, find)
        for layer in layers or ():
            times = {column.name for column in layer.columns if column.type is FieldType.TIME}
            place.clock_times[layer.name] = place.clock_times.get(layer.name, set()) | times
        if layers is not None and finish is not None:
            layers = await finish(session, layers)
        if layers is None:
            return None
        return await run_for_columns(partial(_note, session, layers, reading), [layer.columns for layer in layers])

    return await in_open_run(place, reading, load)


async def in_open_run(place: Workplace, reading: Reading, ask: Callable[[Session], Awaitable[T | None]]) -> T | None:
    """What `ask` learns from the run that is to hold the upload, and is begun unless it is open.

    None if there is none with room for the upload, or it failed, or `ask` returns None: no run is open then, and the
    same has to be done without one.

    Raises:
        SessionOver: it took too long, as it would in any other run.
    """
    session = place.session
    if session is None or not may_hold(place.input_bytes, is_padded=reading.is_padded):
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


def _note(session: Session, layers: Sequence[SeenLayer], reading: Reading) -> Facts | None:
    """The facts about what `session` holds, after it was told of their columns; None if the work file is needed."""
    changes = changes_of(layers, reading)
    if changes is None:
        return None
    session.changes = changes
    session.held = {
        layer.table: [(place, column.name, SAME) for place, column in enumerate(layer.columns)] for layer in layers
    }
    return facts_of(layers, changes, reading)


def may_hold(size_bytes: int, *, is_padded: bool = False) -> bool:
    """Whether a file is small enough to be held in memory."""
    return size_bytes <= LARGEST_BYTES * (PADDED_TIMES if is_padded else 1)


def begin(place: Workplace, session: Session, drivers: Sequence[str], reading: Reading) -> None:
    """Start the run that is held open."""
    place.begin(session, (*drivers, *session.drivers), {**reading.environment, **session.environment})


async def _load(
    place: Workplace, session: Session, reading: Reading, openings: Sequence[Opening], find: Find | None
) -> list[SeenLayer] | None:
    found: list[SeenLayer] = []
    for opening in openings:
        left = place.most_filled - sum(layer.features > 0 for layer in found)
        if left <= 0:
            break
        load = ("load", str(opening.srid or ""), str(left), *opening.layers)
        opened = await session.open(opening.name, reading.drivers, opening.options, then=() if find else load)
        if not opened.ok:
            return None
        if find is not None:
            layers = await find(session)
            if not layers:
                return None
            load += tuple(layers)
        seen = await session.ask(Seen, *load)
        if seen.has_too_many:  # the way to the work file would read them all first
            raise Rejection(TOO_MANY_LAYERS)
        messages = opened.messages + seen.messages
        if not seen.ok or any(pattern.search(messages) for pattern in NEED_WORK_FILE):
            return None
        if opening.is_placed and any(layer.geometries not in {layer.features, opening.placed} for layer in seen.layers):
            return None
        for layer in seen.layers:
            require_short_names(column.name for column in layer.columns)
        found += seen.layers
    return found
