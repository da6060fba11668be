"""Gives what the open run of a session holds the shape that a plan requires, or saves it as the work file."""

from collections.abc import Mapping, Sequence

from service.engine.arguments import TYPE_IN_MEMORY
from service.engine.editing import shaped_tables
from service.engine.environment import MEMORY_DRIVERS, VIRTUAL_DRIVER
from service.engine.reading.work_file import WORK_DRIVER
from service.engine.session import Session
from service.engine.workspace import WORK_FILE, Workplace
from service.formats.format import Format, Writer, writing_of
from service.formats.geometry import Family
from service.formats.plan import ConversionPlan

DETOURS: Mapping[Writer, tuple[str, ...]] = {Writer.WORKBOOK: ("CSV", VIRTUAL_DRIVER)}
"""The drivers that a writer needs in addition to the target's."""
HELD = "held"
"""The name of what is held on command lines."""
ELEVATION = "elevation"
"""The type of a column that gets the third coordinate of points."""


def drivers_for(target: Format) -> tuple[str, ...]:
    """The drivers to register to hold an upload and write it as `target`."""
    writing = writing_of(target)
    rereads = writing.reread.drivers if writing.reread is not None else ()
    lines = (writing.lines_driver,) if writing.lines_driver else ()
    return (*MEMORY_DRIVERS, writing.driver, *lines, *DETOURS.get(writing.writer, ()), *rereads, WORK_DRIVER)


def environment_for(target: Format) -> Mapping[str, str]:
    """The environment that rereading `target` requires."""
    reread = writing_of(target).reread
    return reread.environment if reread is not None else {}


def needs_work_file(plan: ConversionPlan) -> bool:
    """Whether `plan` requires the work file, because it changes geometries or texts, or joins what a session cannot."""
    reshaped = plan.moves_parts or any(
        dataset.linearise or dataset.flatten or dataset.is_exploded for dataset in plan.datasets
    )
    has_empty_sheet = plan.writing.writer is Writer.WORKBOOK and not all(dataset.features for dataset in plan.datasets)
    edited = plan.leaves_out_control or plan.guards_texts
    named = _names_geometry(plan) or _names_its_type(plan)
    return reshaped or has_empty_sheet or edited or plan.keeps_coordinates or named or _mixes_tracks(plan)


def _names_geometry(plan: ConversionPlan) -> bool:
    """Whether the output shows another name of the geometry column than the one that its driver chooses."""
    return plan.writing.shows_geometry_name and plan.geometry_name != plan.writing.geometry_names[0]


def _names_its_type(plan: ConversionPlan) -> bool:
    """Whether a column has the name by which conditions on tables in memory know the type of the geometry."""
    return any(column.written.upper() == TYPE_IN_MEMORY for dataset in plan.datasets for column in dataset.columns)


def _mixes_tracks(plan: ConversionPlan) -> bool:
    """Whether points and lines, or several layers, go into one file whose layers have fixed names.

    Also whether lines with elevations do so beside flat ones, to which the option for their type would give elevations.
    """
    if plan.writing.writer is not Writer.TRACKS:
        return False
    layers = [dataset.layer for dataset in plan.datasets]
    is_uneven = any(layer.has_z and layer.flat_geometries and Family.LINE in layer.families for layer in layers)
    return is_uneven or [len(layer.families) for layer in layers] != [1]


async def shape(session: Session, plan: ConversionPlan) -> None:
    """Give what is held the names and columns of `plan`; other columns are left out.

    Raises:
        Rejection: this failed.
    """
    is_copied = plan.writing.shows_geometry_name or any(
        dataset.only_types or dataset.lacks_nulls for dataset in plan.datasets
    )
    for shaped in shaped_tables(plan):
        kept = [column for column in session.changes[shaped.table] if column[1] in shaped.columns]
        columns = [(place, shaped.columns[column], kind) for place, column, kind in kept]
        if shaped.elevation:
            columns.append((0, shaped.elevation, ELEVATION))
        await _alter(session, shaped.table, shaped.name, columns, is_copied=is_copied)


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
    """Do so if anything changes. `is_copied` ensures that the table is in memory.

    There its geometry has no name, and conditions mean the same whatever the driver of the upload is.
    """
    if table == name and columns == session.held[table] and not is_copied:
        return
    await session.alter(table, name, columns)
