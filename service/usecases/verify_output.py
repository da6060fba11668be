"""Reads a result back before it counts as a success, and compares it with the plan."""

from functools import partial
from pathlib import Path

from service.blocking import run_for_columns
from service.engine.arguments import result_name
from service.engine.convert import Engine
from service.engine.files import size_of_written
from service.engine.workspace import FOLDER, Run
from service.formats.plan import ConversionPlan
from service.formats.source import Source
from service.formats.straying import Astray, stray_warnings
from service.formats.values import value_warnings
from service.formats.verify import ReadBack, compare, unturned_holes, verified_from
from service.geojson.refusals import Unreadable
from service.usecases.inspect_source import scan_file

JSON = "json"
ODD_TIMES = (
    "The file holds {times} not full quarters of an hour, such as +05:07. Columns of dates with times lost these zones "
    "or their minutes, so that they may be other moments now; columns of texts kept them."
)


async def verify_output(
    engine: Engine, run: Run, source: Source, plan: ConversionPlan, directory: Path, *, astray: Astray = ()
) -> tuple[str, ...]:
    """The differences between the result and the plan, as warnings, and what reading and reprojecting have changed.

    `astray` is what `engine.convert` returned.

    Raises:
        Rejection: the result is unusable, or reading it exceeds the limits.
    """
    strays = stray_warnings(plan, astray, engine.catalogue)
    found = await engine.read_back(run, source, plan, directory)
    if found is None and plan.writing.read_back == JSON:
        found = await _scan(engine, run, plan, directory)
    tables = [dataset.columns for dataset in plan.datasets]
    compared = () if found is None else await run_for_columns(partial(compare, plan, found), tables)
    differences = (*strays, *compared)
    if engine.capabilities.is_of(plan.writing.numbers_for_logical):
        differences += tuple(value_warnings(plan.target, plan.converted.layers, frozenset({"booleans"})))
    if engine.capabilities.is_of(plan.writing.turns_holes):
        differences += tuple(unturned_holes(plan))
    odd_times = await engine.count_odd_times(run, source, plan, directory)
    if not odd_times:
        return differences
    times = "1 time in a time zone that is" if odd_times == 1 else f"{odd_times:,} times in time zones that are"
    return (*differences, ODD_TIMES.format(times=times))


async def _scan(engine: Engine, run: Run, plan: ConversionPlan, directory: Path) -> ReadBack | None:
    path = directory / FOLDER / result_name(plan)
    size_of_written(path)  # it is there, and a file
    try:
        scan = await scan_file(engine, run, path)
    except Unreadable:
        return ReadBack()
    (dataset,) = plan.datasets
    return verified_from(scan.facts(plan.stem), dataset)
