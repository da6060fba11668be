"""Checks that a result records the coordinate system that it is in, for formats that cannot record all systems.

Such a driver writes no system, or a related one, and succeeds. The system that it has recorded is the planned one if a
transformation from one to the other moves nothing.
"""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from io import FileIO
from pathlib import Path, PurePath
from xml.sax.saxutils import escape

import msgspec

from service.blocking import run_blocking
from service.engine.arguments import dataset_name
from service.engine.diagnostics import UNREACHABLE
from service.engine.environment import VIRTUAL_DRIVER
from service.engine.files import open_written
from service.engine.jailed import parallels
from service.engine.reading.work_file import ADD, UNGROUPED, WORK_DRIVER, facts_of
from service.engine.session import Answer, SessionOver
from service.engine.workspace import Workplace
from service.formats.crs import CrsCatalogue
from service.formats.datasets import Dataset
from service.formats.facts import Datum
from service.formats.format import Reread, reading_of
from service.formats.plan import ConversionPlan
from service.formats.verify import Recorded

COMPARED_FILE, SWAPPED_FILE, KEPT_FILE = "compared.gpkg", "swapped", "kept"
WRITTEN, MOVED = "written", "moved"
COMPARED = ("-where", "OGR_GEOMETRY IS NOT NULL", "-limit", "1000")
NOT_THE_SYSTEM = re.compile(
    r"source layer has no\s+coordinate system|no coordinate operation|Cannot find coordinate operations"
    rf"|Failed to create coordinate transformation|{UNREACHABLE.pattern}",
    re.IGNORECASE,
)
"""Messages that nothing leads from the recorded system to the planned one, which no system says of itself."""

_Found = tuple[Recorded, Sequence[Datum | None]]


class Compared(Answer, frozen=True):
    """How far the recorded system of a file moves its features; None if nothing leads from it to the planned one."""

    moved: float | None = None
    datum: Datum | None = None


async def recorded_system(place: Workplace, plan: ConversionPlan, how: Reread, catalogue: CrsCatalogue) -> Recorded:
    """How the systems that the result of `plan` records differ from the planned one.

    Raises:
        Rejection: comparing them exceeds the limits.
    """
    spatial = [dataset for dataset in plan.datasets if dataset.layer.is_spatial]
    if plan.output_epsg is None or not spatial:
        return Recorded()
    async with AsyncExitStack() as stack:
        if place.host.is_of(reading_of(plan.target).loses_unit):
            for dataset in spatial:
                name = str(PurePath(dataset_name(plan, dataset)).with_suffix(".map"))
                await stack.enter_async_context(_with_swapped_parallels(place, name))
        found = await _told_by_session(place, plan, how, spatial)
        recorded, datums = found or await _compared_in_work_file(place, plan, how, spatial)
    unknown = (datum.name for datum in datums if datum is not None and not catalogue.knows_datum(datum))
    return msgspec.structs.replace(recorded, unknown_datum=next(unknown, ""))


@asynccontextmanager
async def _with_swapped_parallels(place: Workplace, name: str) -> AsyncIterator[None]:
    """Have the driver read a copy of the .map `name` if it mistakes the unit of its system."""
    if not await run_blocking(partial(_is_mistaken, place.path / name), inline=True):
        yield
        return
    kept = f"{name}.{KEPT_FILE}"
    await place.python(parallels.__name__, name, SWAPPED_FILE)
    await place.rename(name, kept)
    try:
        await place.rename(SWAPPED_FILE, name)
        yield
    finally:
        await place.discard(name)
        await place.rename(kept, name)


def _is_mistaken(file: Path) -> bool:
    if not file.is_file():
        return False
    with FileIO(open_written(file)[0]) as content:
        head = content.read(parallels.HEAD_BYTES)
    return parallels.swapped(head) != head


async def _told_by_session(
    place: Workplace, plan: ConversionPlan, how: Reread, spatial: Sequence[Dataset]
) -> _Found | None:
    """What the run finds that has written the files; None if it is over or cannot tell."""
    session = place.session
    if session is None or not session.is_open:
        return None
    moved: list[float | None] = []
    datums: list[Datum | None] = []
    try:
        for dataset in spatial:
            listed = (dataset_name(plan, dataset), str(plan.output_epsg), *how.drivers, "", *how.options, "")
            found = await session.ask(Compared, "compare", *listed)
            if not found.ok:
                await session.abandon()
                return None
            moved.append(found.moved)
            datums.append(found.datum)
    except SessionOver as over:
        if not over.is_no_loss:
            raise
        return None
    return Recorded(None not in moved, max(each or 0.0 for each in moved)), datums


async def _compared_in_work_file(
    place: Workplace, plan: ConversionPlan, how: Reread, spatial: Sequence[Dataset]
) -> _Found:
    """The same by three runs, however many files there are."""
    files = {dataset_name(plan, dataset): dataset.name for dataset in spatial}
    try:
        await _read(place, how, WRITTEN, files)
        to_planned = (*ADD, "-t_srs", f"EPSG:{plan.output_epsg}")
        if NOT_THE_SYSTEM.search(await _read(place, how, MOVED, files, to_planned)):
            return Recorded(is_known=False), ()
        facts = await facts_of(place, COMPARED_FILE)
    finally:
        await place.discard(COMPARED_FILE)
    extents = {layer.name: layer.extent for layer in facts.layers}
    farthest = 0.0
    for number in range(len(files)):
        written, moved = extents.get(f"{WRITTEN}{number}"), extents.get(f"{MOVED}{number}")
        if written is None:
            continue  # nothing is anywhere
        if moved is None:
            return Recorded(is_known=False), ()
        farthest = max(farthest, *(abs(new - old) for old, new in zip(written, moved, strict=True)))
    return Recorded(moved=farthest), [layer.crs.datum for layer in facts.layers]


async def _read(
    place: Workplace, how: Reread, name: str, files: Mapping[str, str], options: tuple[str, ...] = ()
) -> str:
    """Read `files`, which have one layer each, into layers called `name` and a number, by way of a list of them."""
    layers = (
        f'<OGRVRTLayer name="{name}{number}"><SrcDataSource>{escape(file)}</SrcDataSource>'
        f"<SrcLayer>{escape(layer)}</SrcLayer></OGRVRTLayer>"
        for number, (file, layer) in enumerate(files.items())
    )
    listed = f"{name}.vrt"
    await place.write_text(listed, f"<OGRVRTDataSource>{''.join(layers)}</OGRVRTDataSource>")
    arguments = [*UNGROUPED, *COMPARED, *options, COMPARED_FILE, listed]
    drivers = (*how.drivers, VIRTUAL_DRIVER, WORK_DRIVER)
    return await place.ogr2ogr(arguments, drivers, how.environment, tolerated=NOT_THE_SYSTEM)
