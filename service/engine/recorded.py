"""Checks that a result records the coordinate system that it is in, for formats that cannot record all systems.

Such a driver writes no system, or a related one, and succeeds. The system that it has recorded is the planned one if a
transformation from one to the other moves nothing.
"""

import re

from service.engine.arguments import dataset_name
from service.engine.diagnostics import UNREACHABLE
from service.engine.jailed import facts as facts_program
from service.engine.reading import ADD, UNGROUPED, WORK_DRIVER
from service.engine.recount import NOTHING_KNOWN
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


async def recorded_system(place: Workplace, plan: Plan, how: Reread) -> Recorded:
    """How the system that the result of `plan` records differs from the planned one.

    Raises:
        Rejection: comparing them exceeds the limits.
    """
    spatial = next((dataset for dataset in plan.datasets if dataset.layer.is_spatial), None)
    if spatial is None or plan.output_epsg is None:
        return Recorded()
    if place.session is not None and place.session.is_open:
        await place.session.finish()
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
