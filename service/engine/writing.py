"""From the work file, or straight from an upload, into the output: the command lines of a plan.

Only the source's driver and the target's are registered while writing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from service.engine.gpkg import GEOMETRY, quoted
from service.engine.reading import ADD, WORK_DRIVER, open_options
from service.engine.workplace import OUT, WORK_FILE, Workplace, staged_names
from service.formats.datasets import Dataset
from service.formats.detect import Source
from service.formats.format import Delivery, Writer, Writing, reading_of
from service.formats.geometry import NO_GEOMETRY
from service.formats.plan import Plan

RESULT = "result"
DOCUMENT = "doc"
LINEAR = ("-nlt", "CONVERT_TO_LINEAR")
PLACE_COLUMNS = frozenset({"x", "y", "z"})
SQL_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Point": ("POINT",),
        "MultiPoint": ("MULTIPOINT",),
        "LineString": ("LINESTRING", "CIRCULARSTRING", "COMPOUNDCURVE"),
        "MultiLineString": ("MULTILINESTRING", "MULTICURVE"),
        "Polygon": ("POLYGON", "CURVEPOLYGON", "TRIANGLE"),
        "MultiPolygon": ("MULTIPOLYGON", "MULTISURFACE", "POLYHEDRALSURFACE", "TIN"),
    }
)


class Origin(msgspec.Struct, frozen=True):
    """What a plan reads from: the work file, or the upload itself."""

    name: str
    drivers: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = MappingProxyType({})
    has_tables: bool = True
    """Whether layers are told apart by the tables of the work file."""

    def tables(self, plan: Plan, *datasets: Dataset) -> tuple[str, ...]:
        """The arguments that choose the layers of `datasets`."""
        return tuple(table_of(plan, dataset) for dataset in datasets) if self.has_tables else ()


WORK = Origin(WORK_FILE, (WORK_DRIVER,))


def origin_of(source: Source, plan: Plan) -> Origin:
    """What `plan` reads from."""
    if not plan.direct:
        return WORK
    reading = reading_of(source.format)
    options = () if plan.writing.json else tuple(open_options(reading))
    return Origin(staged_names(source)[0], reading.drivers, options, reading.environment, has_tables=False)


async def write(place: Workplace, plan: Plan, origin: Origin) -> None:
    """Write what `plan` says from `origin` into the folder of outputs.

    Raises:
        Rejection: the target cannot hold the data, or it cannot be reprojected.
    """
    await _WRITERS[plan.writing.writer](place, plan, origin)


def table_of(plan: Plan, dataset: Dataset) -> str:
    """The table of the work file that holds `dataset` when it is written.

    A driver that takes all layers at once calls them after their tables, which are renamed for it.
    """
    renamed = plan.writing.writer is Writer.AT_ONCE and len(plan.datasets) > 1
    return dataset.name if renamed else dataset.layer.table


def result_name(plan: Plan) -> str:
    """The file, or directory, that the driver writes when it is a single one."""
    writing = plan.writing
    if writing.delivery is Delivery.KMZ:
        return f"{OUT}/{DOCUMENT}{writing.member}"
    return f"{OUT}/{plan.stem if writing.delivery is Delivery.ARCHIVE else RESULT}{writing.member or writing.extension}"


def dataset_name(plan: Plan, dataset: Dataset) -> str:
    """Where `dataset` is written."""
    return f"{OUT}/{dataset.name}{plan.writing.member}" if plan.writing.one_file_per_layer else result_name(plan)


async def _write_per_layer(place: Workplace, plan: Plan, origin: Origin) -> None:
    for number, dataset in enumerate(plan.datasets):
        adds = ADD if number and not plan.writing.one_file_per_layer else ()
        arguments = [*_begin(plan), *adds, *_names(plan), *_type(plan.writing, dataset), *_systems(plan, [dataset])]
        arguments += [*_select(plan, dataset), *origin.options, dataset_name(plan, dataset), origin.name]
        tables = () if plan.writing.attributes is not None else origin.tables(plan, dataset)
        await _run(place, plan, origin, [*arguments, *tables, "-nln", dataset.name])


async def _write_at_once(place: Workplace, plan: Plan, origin: Origin) -> None:
    z = plan.writing.z_options if any(dataset.declares_z for dataset in plan.datasets) else ()
    linear = LINEAR if any(dataset.linearise for dataset in plan.datasets) else ()
    name = ("-nln", plan.datasets[0].name) if len(plan.datasets) == 1 else ()
    arguments = [*_begin(plan), *z, *linear, *_systems(plan, plan.datasets), *origin.options]
    await _run(
        place, plan, origin, [*arguments, result_name(plan), origin.name, *origin.tables(plan, *plan.datasets), *name]
    )


async def _write_places(place: Workplace, plan: Plan, origin: Origin) -> None:
    dataset = plan.datasets[0]
    arguments = [*_begin(plan), *geometry_columns(dataset), *_systems(plan, [dataset]), *origin.options]
    await _run(place, plan, origin, [*arguments, result_name(plan), origin.name, *origin.tables(plan, dataset)])


def geometry_columns(dataset: Dataset) -> tuple[str, ...]:
    """How the CSV driver puts geometry into columns: X and Y for points, else WKT."""
    names = {column.name.casefold() for column in dataset.columns}
    if dataset.geometry_type == NO_GEOMETRY:
        return ()
    # the driver's header is wrong when there is a single column beside the two
    if dataset.geometry_type == "Point" and len(names) > 1 and not names & PLACE_COLUMNS:
        return ("-lco", "GEOMETRY=AS_XYZ" if dataset.declares_z else "GEOMETRY=AS_XY")
    return ("-lco", "GEOMETRY=AS_WKT", *(LINEAR if dataset.linearise else ()))


async def _run(place: Workplace, plan: Plan, origin: Origin, arguments: Sequence[str]) -> None:
    environment = {**origin.environment, **plan.writing.environment}
    await place.ogr2ogr(arguments, (*origin.drivers, plan.writing.driver), environment)


def _begin(plan: Plan) -> list[str]:
    return ["-f", plan.writing.driver, "-unsetFid", *plan.writing.options]


def _names(plan: Plan) -> list[str]:
    """The names of the columns that the target adds, so chosen that they hide none of the data's."""
    if not plan.writing.fid_names:
        return []
    return ["-lco", f"FID={plan.fid_name}", "-lco", f"GEOMETRY_NAME={plan.geometry_name}"]


def _type(writing: Writing, dataset: Dataset) -> list[str]:
    z = "Z" if dataset.declares_z else ""
    told = writing.type_options.get(dataset.geometry_type, ())
    return [argument.format(z=z) for argument in told] + [*(LINEAR if dataset.linearise else ())]


def _systems(plan: Plan, datasets: Sequence[Dataset]) -> list[str]:
    if plan.output_epsg is None or not any(dataset.layer.is_spatial for dataset in datasets):
        return []
    from_ = ["-s_srs", f"EPSG:{plan.source_epsg}"] if plan.source_epsg is not None else []
    wrap = ["-wrapdateline"] if plan.writing.wraps_dateline else []
    return [*from_, "-t_srs", f"EPSG:{plan.output_epsg}", *wrap]


def _select(plan: Plan, dataset: Dataset) -> list[str]:
    if plan.writing.attributes is not None:
        return ["-sql", _query(plan, dataset)]
    if not dataset.only_types:
        return []
    types = ", ".join(f"'{name}'" for geometry in dataset.only_types for name in SQL_TYPES[geometry])
    nulls = f" OR {GEOMETRY} IS NULL" if dataset.takes_nulls else ""
    return ["-where", f"ST_GeometryType({GEOMETRY}) IN ({types}){nulls}"]


def _query(plan: Plan, dataset: Dataset) -> str:
    writing = plan.writing
    kept = [column.name for column in dataset.columns if column.name in (writing.attributes or ())]
    listed = ", ".join([GEOMETRY, *map(quoted, kept)])
    filled = "" if writing.null_geometry else f" WHERE {GEOMETRY} IS NOT NULL"
    return f"SELECT {listed} FROM {quoted(table_of(plan, dataset))}{filled}"  # noqa: S608 -- quoted


_WRITERS: Mapping[Writer, Callable[[Workplace, Plan, Origin], Awaitable[None]]] = MappingProxyType(
    {
        Writer.PER_LAYER: _write_per_layer,
        Writer.AT_ONCE: _write_at_once,
        Writer.PLACES: _write_places,
    }
)
