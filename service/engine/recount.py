"""Counts the features that cannot be reprojected, once one fails: the converter stops at the first."""

from service.engine.arguments import Origin, systems
from service.engine.diagnostics import REMEDY, UNREACHABLE, UnreachableSystem
from service.engine.reading.work_file import UNGROUPED, WORK_DRIVER, facts_of
from service.engine.workspace import Workplace
from service.errors import Rejection
from service.formats.plan import ConversionPlan

COUNTED_FILE = "counted.gpkg"


async def count_unreachable(
    place: Workplace, plan: ConversionPlan, origin: Origin, failure: UnreachableSystem
) -> Rejection:
    """The rejection to report for `failure`, with the number of features concerned."""
    tables = origin.tables(plan, *plan.datasets)
    arguments = [*UNGROUPED, "-skipfailures", *systems(plan, plan.datasets), COUNTED_FILE, origin.name]
    arguments += dict.fromkeys(tables)
    try:
        await place.ogr2ogr(arguments, (*origin.drivers, WORK_DRIVER), origin.environment, tolerated=UNREACHABLE)
        reached = await facts_of(place, COUNTED_FILE)
    except Rejection:
        return failure
    layers = {dataset.layer.table: dataset.layer for dataset in plan.datasets}.values()
    wanted = sum(sum(layer.geometry_types.values()) for layer in layers)
    lost = wanted - reached.histogram.total()
    if lost <= 0:
        return failure
    return Rejection(f"{lost:,} of {wanted:,} features cannot be transformed to EPSG:{plan.output_epsg}. {REMEDY}")
