"""Checks that a result records the coordinate system that it is in, for formats that cannot record all systems.

Such a driver writes no system, or a related one, and succeeds. The system that it has recorded is the planned one if a
transformation from one to the other moves nothing.
"""

import re

from service.engine.arguments import dataset_name
from service.engine.diagnostics import UNREACHABLE
from service.engine.jailed import facts as facts_program
from service.engine.reading import ADD, NOTHING_KNOWN, UNGROUPED, WORK_DRIVER
from service.engine.session import Answer, SessionOver
from service.engine.workspace import Workplace
from service.formats.datasets import Dataset
from service.formats.facts import Facts
from service.formats.format import Reread
from service.formats.plan import Plan
from service.formats.verify import Recorded

COMPARED_FILE = "compared.gpkg"
EXTENTS_FILE = "extents.json"
WRITTEN, MOVED = "written", "moved"
COMPARED = ("-where", "OGR_GEOMETRY IS NOT NULL", "-limit", "1000")
NOT_THE_SYSTEM = re.compile(
    r"source layer has no\s+coordinate system|no coordinate operation|Cannot find coordinate operations"
    rf"|Failed to create coordinate transformation|{UNREACHABLE.pattern}",
    re.IGNORECASE,
)
"""Messages that nothing leads from the recorded system to the planned one, which no system says of itself."""


class Compared(Answer, frozen=True):
    """How far the recorded system of a file moves its features; None if nothing leads from it to the planned one."""

    moved: float | None = None


async def recorded_system(place: Workplace, plan: Plan, how: Reread) -> Recorded:
    """How the systems that the result of `plan` records differ from the planned one.

    Raises:
        Rejection: comparing them exceeds the limits.
    """
    spatial = [dataset for dataset in plan.datasets if dataset.layer.is_spatial]
    if plan.output_epsg is None:
        return Recorded()
    every = [await _compared(place, plan, how, dataset) for dataset in spatial]
    return Recorded(all(each.is_known for each in every), max((each.moved for each in every), default=0.0))


async def _compared(place: Workplace, plan: Plan, how: Reread, dataset: Dataset) -> Recorded:
    if place.session is not None and place.session.is_open:
        try:
            listed = (dataset_name(plan, dataset), str(plan.output_epsg), *how.drivers, "", *how.options, "")
            found = await place.session.ask(Compared, "compare", *listed)
        except SessionOver as over:
            if not over.is_no_loss:
                raise
        else:
            if found.ok:
                return Recorded(is_known=found.moved is not None, moved=found.moved or 0.0)
            await place.session.abandon()
    return await _compared_in_work_file(place, plan, how, dataset)


async def _compared_in_work_file(place: Workplace, plan: Plan, how: Reread, spatial: Dataset) -> Recorded:
    try:
        await _read(place, plan, how, spatial, ("-nln", WRITTEN))
        to_planned = (*ADD, "-nln", MOVED, "-t_srs", f"EPSG:{plan.output_epsg}")
        if NOT_THE_SYSTEM.search(await _read(place, plan, how, spatial, to_planned)):
            return Recorded(is_known=False)
        await place.python(facts_program.__name__, COMPARED_FILE, NOTHING_KNOWN, EXTENTS_FILE)
        facts = await place.read_json(EXTENTS_FILE, Facts)
    finally:
        await place.discard(COMPARED_FILE)
    written, moved = (
        next((layer.extent for layer in facts.layers if layer.name == name), None) for name in (WRITTEN, MOVED)
    )
    if written is None:
        return Recorded()  # nothing is anywhere
    if moved is None:
        return Recorded(is_known=False)
    return Recorded(moved=max(abs(new - old) for old, new in zip(written, moved, strict=True)))


async def _read(place: Workplace, plan: Plan, how: Reread, dataset: Dataset, options: tuple[str, ...]) -> str:
    arguments = [*UNGROUPED, *COMPARED, *options, COMPARED_FILE, dataset_name(plan, dataset)]
    return await place.ogr2ogr(arguments, (*how.drivers, WORK_DRIVER), how.environment, tolerated=NOT_THE_SYSTEM)
