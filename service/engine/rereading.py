"""Has a driver read a result back: in the run that wrote it, in a run of its own, or by way of a second work file."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from service.blocking import run_for_columns
from service.engine.arguments import dataset_name, result_name
from service.engine.capabilities import Capabilities
from service.engine.environment import MEMORY_DRIVERS
from service.engine.jailed import readback as readback_program
from service.engine.jailed.readback import MOST_CELLS
from service.engine.reading.work_file import INTO_WORK_FILE, WORK_DRIVER, facts_of, open_options
from service.engine.session import Answer, Session, SessionOver
from service.engine.workspace import Workplace
from service.errors import Rejection
from service.formats.datasets import Dataset
from service.formats.facts import MAX_COLUMNS, MAX_LAYERS, Count, Layer, Name
from service.formats.format import Reread, Writer, reading_of
from service.formats.geometry import NO_GEOMETRY
from service.formats.plan import ConversionPlan
from service.formats.verify import ReadBack, VerifiedColumn, VerifiedLayer, expected_in

REREAD_FILE = "reread.gpkg"


class CountedColumn(msgspec.Struct, frozen=True, gc=False):
    """How many values are not null, how many of these are empty texts, and the sum of the numbers among them."""

    filled: Count
    empty: Count = 0
    total: float | None = None


class CountedLayer(msgspec.Struct, frozen=True, gc=False):
    """A layer of a result as its driver reports it; without columns if there are too many values to count."""

    name: Name
    features: Count
    geometries: Count
    has_z: bool
    has_m: bool
    columns: Annotated[Mapping[Name, CountedColumn], Meta(max_length=2 * MAX_COLUMNS)] | None


class Counted(Answer, frozen=True):
    """All layers of a result."""

    layers: Annotated[tuple[CountedLayer, ...], Meta(max_length=2 * MAX_LAYERS)]


class Tallied(Answer, frozen=True):
    """The only layer of a result in GeoJSON or lines of WKT by its text, which shows columns of features alone."""

    most_objects: ClassVar[int] = 1 << 15
    layer: VerifiedLayer | None = None


def has_tally(plan: ConversionPlan) -> bool:
    """Whether the run that wrote the result of `plan` can count it by its text."""
    return plan.writing.json or plan.writing.writer is Writer.LINES_OF_WKT


def finds_all(plan: ConversionPlan, how: Reread) -> bool:
    """Whether the driver finds all datasets and columns in the result of `plan`, under their names."""
    names = [column.written for dataset in plan.datasets for column in dataset.columns]
    if not how.tables and any(dataset.geometry_type == NO_GEOMETRY for dataset in plan.datasets):
        return False
    if not how.number_names.isdisjoint(map(str.lower, names)):
        return False
    has_enough = all(len(dataset.columns) >= how.least_columns for dataset in plan.datasets)
    return has_enough and not (how.changed_names and any(map(re.compile(how.changed_names).search, names)))


def questions_after(plan: ConversionPlan, how: Reread | None, host: Capabilities) -> dict[str, tuple[str, ...]]:
    """What `tally` or `reread` asks about a result, by the name under which the converter writes it in one go."""
    if has_tally(plan):
        return {result_name(plan): _tallying(plan)}
    if how is None or host.spare_for(how.drivers) or (len(plan.datasets) > 1 and not plan.writing.one_file_per_layer):
        return {}
    return {name: _counting(name, how) for name in _files(plan)}


def _tallying(plan: ConversionPlan) -> tuple[str, ...]:
    return ("tally" if plan.writing.json else "tally_lines", result_name(plan))


def _counting(name: str, how: Reread) -> tuple[str, ...]:
    return ("count", name, str(MOST_CELLS if how.columns else 0), *how.drivers, "", *how.options, "")


async def tally(place: Workplace, plan: ConversionPlan) -> ReadBack | None:
    """Count in the run that wrote it what the result of `plan` holds; None if that run is over or cannot."""
    if place.session is None or not place.session.is_open:
        return None
    try:
        told = await place.session.ask(Tallied, *_tallying(plan))
    except SessionOver as over:
        if not over.is_no_loss:
            raise
        return None
    if not told.ok or told.layer is None:
        return None
    (dataset,) = plan.datasets
    found = told.layer if told.layer.features else msgspec.structs.replace(told.layer, columns=None)
    return ReadBack({dataset.name: found})


async def reread(place: Workplace, plan: ConversionPlan, how: Reread) -> ReadBack:
    """Count the content of the result of `plan`; unreadable layers are left out."""
    found: dict[str, VerifiedLayer] = {}
    for name, datasets in _files(plan).items():
        layers = await _count(place, name, how)
        compared = partial(_by_dataset, plan, how, datasets, layers)
        found |= await run_for_columns(compared, [dataset.columns for dataset in datasets])
    return ReadBack(found | await _read_further(place, plan, how, found))


async def _read_further(
    place: Workplace, plan: ConversionPlan, how: Reread, found: Mapping[str, VerifiedLayer]
) -> dict[str, VerifiedLayer]:
    """The layers of which the driver reads only the beginning, if another reader finds them complete."""
    read = {dataset.name: found[dataset.name].features if dataset.name in found else 0 for dataset in plan.datasets}
    short = {dataset.name: dataset.features for dataset in plan.datasets if read[dataset.name] < dataset.features}
    if not how.rows_by or not short:
        return {}
    names = json.dumps(dict.fromkeys(short, result_name(plan)))
    counted = await place.call(readback_program.__name__, ReadBack, how.rows_by, names)
    return {
        name: msgspec.structs.replace(layer, stops_after=read[name])
        for name, layer in counted.layers.items()
        if name in short and layer.features == short[name]
    }


def _files(plan: ConversionPlan) -> dict[str, Sequence[Dataset]]:
    """The files of a result, each with its datasets."""
    if plan.writing.one_file_per_layer:
        return {dataset_name(plan, dataset): (dataset,) for dataset in plan.datasets}
    return {result_name(plan): plan.datasets}


async def _count(place: Workplace, name: str, how: Reread) -> Sequence[CountedLayer]:
    if place.session is not None and not place.host.spare_for(how.drivers):
        try:
            return await _count_in_session(place, place.session, name, how)
        except SessionOver as over:
            if not over.is_no_loss:
                raise
    return await _count_in_work_file(place, name, how)


async def _count_in_session(place: Workplace, session: Session, name: str, how: Reread) -> Sequence[CountedLayer]:
    if not session.is_open:
        place.begin(session, (*how.drivers, *MEMORY_DRIVERS), how.environment)
    counted = await session.ask(Counted, *_counting(name, how))
    return counted.layers if counted.ok else ()


async def _count_in_work_file(place: Workplace, name: str, how: Reread) -> Sequence[CountedLayer]:
    arguments = [*INTO_WORK_FILE, *open_options(*how.options), REREAD_FILE, name]
    try:
        await place.ogr2ogr(arguments, (*how.drivers, WORK_DRIVER), how.environment)
        facts = await facts_of(place, REREAD_FILE)
    except Rejection:
        return ()
    finally:
        await place.discard(REREAD_FILE)
    return [_counted(layer) for layer in facts.layers]


def _counted(layer: Layer) -> CountedLayer:
    columns = {field.name: CountedColumn(field.filled or 0, field.empty, field.total) for field in layer.fields}
    geometries = sum(layer.geometry_types.values())
    return CountedLayer(layer.name, layer.features, geometries, layer.has_z, layer.has_m, columns)


def _by_dataset(
    plan: ConversionPlan, how: Reread, datasets: Sequence[Dataset], layers: Sequence[CountedLayer]
) -> dict[str, VerifiedLayer]:
    """Match layers to datasets: by name, or by order if no name is a dataset's."""
    if how.is_one and layers:
        return _shares(plan, how, datasets, _together(plan, layers))
    named = {layer.name: layer for layer in layers}
    if len(layers) == len(datasets) and not named.keys() & {dataset.name for dataset in datasets}:
        named = {dataset.name: layer for dataset, layer in zip(datasets, layers, strict=True)}
    return {
        dataset.name: _verified(plan, how, dataset, named[dataset.name])
        for dataset in datasets
        if dataset.name in named
    }


def _shares(
    plan: ConversionPlan, how: Reread, datasets: Sequence[Dataset], whole: CountedLayer
) -> dict[str, VerifiedLayer]:
    """What is there of each dataset in a result that does not tell them apart; unknown if it lacks some of several."""
    if len(datasets) == 1 or not whole.features:
        return {dataset.name: _verified(plan, how, dataset, whole) for dataset in datasets}
    expected = [expected_in(plan.writing, dataset) for dataset in datasets]
    if [whole.features, whole.geometries] != [sum(counts) for counts in zip(*expected, strict=True)]:
        return {}
    return {
        dataset.name: _verified(
            plan, how, dataset, msgspec.structs.replace(whole, features=features, geometries=geometries)
        )
        for dataset, (features, geometries) in zip(datasets, expected, strict=True)
    }


def _together(plan: ConversionPlan, layers: Iterable[CountedLayer]) -> CountedLayer:
    every = [layer for layer in layers if layer.name not in reading_of(plan.target).derived_layers]
    return CountedLayer(
        "",
        sum(layer.features for layer in every),
        sum(layer.geometries for layer in every),
        any(layer.has_z for layer in every),
        any(layer.has_m for layer in every),
        None,
    )


def _verified(plan: ConversionPlan, how: Reread, dataset: Dataset, layer: CountedLayer) -> VerifiedLayer:
    """The counts that can be compared."""
    is_spatial = dataset.geometry_type != NO_GEOMETRY and how.geometries
    columns = None
    if how.columns and layer.columns is not None and len(layer.columns) >= how.least_columns:
        columns = {name: _column(plan, how, column) for name, column in _as_written(dataset, layer.columns)}
    return VerifiedLayer(
        features=layer.features,
        geometries=layer.geometries if is_spatial else None,
        has_z=layer.has_z if is_spatial and how.dimensions else None,
        has_m=layer.has_m if is_spatial and how.dimensions else None,
        columns=columns,
    )


def _as_written(dataset: Dataset, columns: Mapping[str, CountedColumn]) -> Iterator[tuple[str, CountedColumn]]:
    """The columns by their names in the plan; drivers change their case, but no two differ in case alone."""
    written = {column.written.casefold(): column.written for column in dataset.columns}
    for name, column in columns.items():
        planned = written.get(name.casefold(), name)
        yield (name if planned in columns else planned), column


def _column(plan: ConversionPlan, how: Reread, column: CountedColumn) -> VerifiedColumn:
    if not how.values:
        return VerifiedColumn()
    filled = column.filled - (column.empty if plan.writing.empty_is_null else 0)
    return VerifiedColumn(filled, column.total)
