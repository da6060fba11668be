"""Builds the arguments of the converter that writes a plan. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from service.engine.jailed.gpkg import GEOMETRY, quoted
from service.engine.reading.work_file import ADD, WORK_DRIVER, open_options
from service.engine.workspace import OUT, WORK_FILE, staged_names
from service.formats.datasets import Dataset
from service.formats.format import Packaging, Writer, Writing, reading_of
from service.formats.geometry import NO_GEOMETRY
from service.formats.plan import ConversionPlan
from service.formats.source import Source
from service.formats.systems import is_placed

RESULT = "result"
DOCUMENT = "doc"
LINEAR = ("-nlt", "CONVERT_TO_LINEAR")
_CUT_WHERE_NEAR = ("-wrapdateline",)
_CUT_WHERE_WIDE = (*_CUT_WHERE_NEAR, "-datelineoffset", "180")
CREATION = "-dsco"
WIDE_INTEGERS = re.compile(r"\bInteger64=\w+")
NARROW_INTEGERS = "Integer64=Integer"
PLACE_COLUMNS = frozenset({"x", "y", "z"})
WKT_COLUMN = "WKT"
TYPE_IN_MEMORY = "OGR_GEOMETRY"
"""How conditions on tables in memory name the type of the geometry, which is null if there is none."""
SQL_TYPES: Mapping[str, tuple[str, ...]] = {
    "Point": ("POINT",),
    "MultiPoint": ("MULTIPOINT",),
    "LineString": ("LINESTRING", "CIRCULARSTRING", "COMPOUNDCURVE"),
    "MultiLineString": ("MULTILINESTRING", "MULTICURVE"),
    "Polygon": ("POLYGON", "CURVEPOLYGON", "TRIANGLE"),
    "MultiPolygon": ("MULTIPOLYGON", "MULTISURFACE", "POLYHEDRALSURFACE", "TIN"),
}


class Origin(msgspec.Struct, frozen=True):
    """The input of a plan: the work file, or the upload itself."""

    name: str
    drivers: tuple[str, ...]
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    has_tables: bool = True
    """Whether layers are identified by the tables of the work file."""
    is_shaped: bool = False
    """Whether its tables are in memory and have the columns of the plan."""

    def tables(self, plan: ConversionPlan, *datasets: Dataset) -> tuple[str, ...]:
        """The arguments that select the layers of `datasets`."""
        return tuple(table_of(plan, dataset) for dataset in datasets) if self.has_tables else ()


WORK = Origin(WORK_FILE, (WORK_DRIVER,))


def origin_of(source: Source, plan: ConversionPlan) -> Origin:
    """The input of `plan`."""
    if not plan.direct:
        return WORK
    reading = reading_of(source.format)
    fixed = reading.text_options if plan.writing.json else reading.options
    options = dict.fromkeys((*fixed, *source.options))
    name = staged_names(source)[0]
    return Origin(name, reading.drivers, tuple(open_options(*options)), reading.environment, has_tables=False)


def table_of(plan: ConversionPlan, dataset: Dataset) -> str:
    """The table of the work file from which `dataset` is written.

    A driver that takes all layers at once names them after their tables, which are therefore renamed.
    """
    renamed = plan.writing.writer is Writer.AT_ONCE and len(plan.datasets) > 1
    return dataset.name if renamed else dataset.layer.table


def result_name(plan: ConversionPlan) -> str:
    """The file or directory that the driver writes, if it is a single one."""
    writing = plan.writing
    if writing.delivery is Packaging.KMZ:
        return f"{OUT}/{DOCUMENT}{writing.member}"
    return (
        f"{OUT}/{plan.stem if writing.delivery is Packaging.ARCHIVE else RESULT}{writing.member or writing.extension}"
    )


def dataset_name(plan: ConversionPlan, dataset: Dataset) -> str:
    """Where `dataset` is written."""
    return f"{OUT}/{dataset.name}{plan.writing.member}" if plan.writing.one_file_per_layer else result_name(plan)


class Places(msgspec.Struct, frozen=True):
    """How the CSV driver writes the geometry of a dataset into columns, and their types."""

    arguments: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    columns: str = ""
    """The letters of the columns of points, or the only column of other geometries."""


def places_of(dataset: Dataset) -> Places:
    """X and Y columns for points, a column of WKT for other geometries, nothing for a table."""
    names = {column.written.casefold() for column in dataset.columns}
    if dataset.geometry_type == NO_GEOMETRY:
        return Places()
    layer = dataset.layer
    # the driver writes a wrong header if there is a single column in addition to X and Y
    fits = not layer.has_m and not layer.flat_geometries and len(names) > 1 and not names & PLACE_COLUMNS
    if dataset.geometry_type == "Point" and fits:
        z = "Z" if dataset.declares_z else ""
        # without a declared type, the driver writes no coordinates of points with elevations
        return Places(("-lco", f"GEOMETRY=AS_XY{z}", "-nlt", f"POINT{z}"), ("Real",) * len(f"XY{z}"), f"XY{z}")
    linear = LINEAR if dataset.linearise else ()
    return Places(("-lco", "GEOMETRY=AS_WKT", "-lco", f"GEOMETRY_NAME={WKT_COLUMN}", *linear), ("String",), WKT_COLUMN)


def opening(plan: ConversionPlan, *, is_in_place: bool = False, adds: bool = False) -> list[str]:
    """The driver and its fixed options; integers are converted only if some values require it.

    What only `adds` to a file has no options for its creation: GDAL 3.13 fails over them, releases before warn.
    """
    chosen = plan.writing.options_in_place if is_in_place else plan.writing.options
    fields = [field for dataset in plan.datasets for field in dataset.layer.fields]
    fits = not plan.direct and not any(field.beyond_32_bits for field in fields)
    options = [WIDE_INTEGERS.sub(NARROW_INTEGERS, option) if fits else option for option in chosen]
    if adds:
        options = [option for before, option in pairwise(["", *options]) if CREATION not in {before, option}]
    return ["-f", plan.writing.driver, "-unsetFid", *(ADD if adds else ()), *options]


def added_columns(plan: ConversionPlan) -> list[str]:
    """The names of the columns that the target adds, chosen so that they hide no column of the data."""
    if not plan.writing.fid_names:
        return []
    return ["-lco", f"FID={plan.fid_name}", "-lco", f"GEOMETRY_NAME={plan.geometry_name}"]


def declared(writing: Writing, dataset: Dataset) -> list[str]:
    """The geometry type, in the form that the driver expects."""
    z = dataset.dimensions(writing)
    options = writing.type_options.get(dataset.geometry_type, ())
    return [argument.format(z=z) for argument in options] + [*(LINEAR if dataset.linearise else ())]


def cutting(plan: ConversionPlan) -> Sequence[str]:
    """Cut at the date line what has edges near it on both sides or, if any may be wound, wider than half of the map."""
    return _CUT_WHERE_WIDE if plan.is_wound else _CUT_WHERE_NEAR


def systems(plan: ConversionPlan, datasets: Sequence[Dataset]) -> list[str]:
    """The source and target coordinate systems."""
    if plan.keeps_coordinates:
        return list(plan.writing.no_system)
    placed = any(is_placed(plan.writing, dataset.layer, plan.source_epsg) for dataset in datasets)
    if plan.output_epsg is None or not placed:
        return []
    from_ = ["-s_srs", f"EPSG:{plan.source_epsg}"] if plan.source_epsg is not None else []
    return [*from_, "-t_srs", f"EPSG:{plan.output_epsg}", *(cutting(plan) if plan.wraps else ())]


def selection(plan: ConversionPlan, dataset: Dataset, origin: Origin) -> list[str]:
    """The features and columns of its table that go into a dataset, if it needs to be told."""
    if plan.writing.attributes is not None and not origin.is_shaped:
        return ["-sql", _query(plan, dataset)]
    geometry = TYPE_IN_MEMORY if origin.is_shaped else GEOMETRY
    if not dataset.only_types:
        return ["-where", f"{geometry} IS NOT NULL"] if dataset.lacks_nulls else []
    types = is_of_type(dataset.only_types) if origin.is_shaped else is_one_of(dataset.only_types)
    nulls = f" OR {geometry} IS NULL" if dataset.takes_nulls else ""
    return ["-where", f"{types}{nulls}"]


def selected_tables(plan: ConversionPlan, dataset: Dataset, origin: Origin) -> tuple[str, ...]:
    """The arguments that select the layer of `dataset`; none if a query in `selection` names it."""
    by_query = plan.writing.attributes is not None and not origin.is_shaped
    return () if by_query else origin.tables(plan, dataset)


def is_one_of(types: Iterable[str]) -> str:
    """The SQL condition that a feature's geometry in the work file has one of `types`."""
    listed = ", ".join(f"'{name}'" for geometry in types for name in SQL_TYPES[geometry])
    return f"ST_GeometryType({GEOMETRY}) IN ({listed})"


def is_of_type(types: Iterable[str]) -> str:
    """The same for tables in memory, which have no curves."""
    listed = ", ".join(f"'{name.upper()}'" for name in types)
    return f"{TYPE_IN_MEMORY} IN ({listed})"


def _query(plan: ConversionPlan, dataset: Dataset) -> str:
    writing = plan.writing
    kept = [column.name for column in dataset.columns if column.name in (writing.attributes or ())]
    listed = ", ".join([GEOMETRY, *map(quoted, kept)])
    filled = "" if writing.null_geometry else f" WHERE {GEOMETRY} IS NOT NULL"
    return f"SELECT {listed} FROM {quoted(table_of(plan, dataset))}{filled}"  # noqa: S608 -- quoted
