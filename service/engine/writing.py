"""Writes the output from the work file, or directly from an upload: the runs of a plan.

Only the source's driver and the target's are registered while writing.
"""

import csv
import io
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from xml.sax.saxutils import escape, quoteattr

from service.engine.arguments import (
    LINEAR,
    WKT_COLUMN,
    Origin,
    added_columns,
    dataset_name,
    declared,
    is_one_of,
    opening,
    places_of,
    result_name,
    selected_tables,
    selection,
    systems,
    table_of,
)
from service.engine.bounds import bounds_of
from service.engine.environment import VIRTUAL_DRIVER
from service.engine.jailed import PARQUET_WRITING
from service.engine.jailed.gpkg import FID, GEOMETRY, quoted
from service.engine.reading.tables import CSV_DRIVER
from service.engine.reading.work_file import WORK_DRIVER
from service.engine.workspace import OUT, VERIFIED_FILE, WORK_FILE, Workplace
from service.errors import Rejection
from service.formats.datasets import Dataset
from service.formats.facts import FieldType
from service.formats.format import Writer
from service.formats.geometry import FAMILIES, Family
from service.formats.plan import ConversionPlan

UNENCODABLE = re.compile(r"couldn't be converted correctly")
OUT_OF_BOUNDS = re.compile(r"written outside of the file's predefined bounds")
OUT_OF_BOUNDS_WORDS = (
    "Some coordinates are larger than {target} can store. Choose another targetEpsg, such as 4326, or another "
    "outputFormat, such as GeoPackage."
)
LINES_FILE = "lines.geojsonl"
LINES_CSV = "lines.csv"
UNEVEN_CSV = "uneven.csv"
UNDECLARED_FILE = "undeclared.xml"
SHEETS_FILE = "sheets.vrt"
TRACKS_FILE = "tracks.vrt"
REPROJECTED_FILE = "reprojected.gpkg"
PLAIN_CSV = ("-f", CSV_DRIVER, "-unsetFid", "-lco", "STRING_QUOTING=IF_NEEDED")
NO_PLACES: Mapping[str, str] = {"HEADERS": "YES", "GEOM_POSSIBLE_NAMES": "__none__", "EMPTY_STRING_AS_NULL": "YES"}
CSV_TYPES: Mapping[FieldType, str] = {
    FieldType.INTEGER: "Integer64",
    FieldType.REAL: "Real",
    FieldType.BOOLEAN: "Integer(Boolean)",
    FieldType.DATE: "Date",
    FieldType.DATETIME: "DateTime",
}
"""The type names in a .csvt; all other types are text."""
TRACK_TYPES: Mapping[Family, str] = {Family.POINT: "Point", Family.LINE: "MultiLineString"}
"""The types of layers that become waypoints and tracks."""


async def write(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    """Write what `plan` says from `origin` into the output folder.

    Raises:
        Rejection: the target cannot hold the data, or it cannot be reprojected.
    """
    await _WRITERS[plan.writing.writer](place, plan, origin)


async def _write_per_layer(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    if plan.gathers_lines:
        await _write_gathered(place, plan, origin)
        return
    writing = plan.writing
    is_in_place = plan.is_in_place and place.host.is_of(writing.in_place)
    for number, dataset in enumerate(plan.datasets):
        adds = number > 0 and not writing.one_file_per_layer
        system = writing.no_system if is_in_place else systems(plan, [dataset])
        arguments = [
            *opening(plan, is_in_place=is_in_place, adds=adds),
            *added_columns(plan),
            *declared(writing, dataset),
        ]
        arguments += [*system, *selection(plan, dataset, origin), *origin.options]
        tables = selected_tables(plan, dataset, origin)
        arguments += [dataset_name(plan, dataset), origin.name, *tables, "-nln", dataset.name]
        await _run_fitting(place, plan, origin, dataset, arguments)
        if place.host.is_of(writing.turns_holes) and dataset.has_areas_in_space and not dataset.has_unclear_holes:
            await place.finish("turn", dataset_name(plan, dataset))


async def _run_fitting(
    place: Workplace, plan: ConversionPlan, origin: Origin, dataset: Dataset, arguments: Sequence[str]
) -> None:
    """Write with the encoding and the area that the target prefers, and again without those that turn out not to fit.

    Raises:
        Rejection: coordinates lie outside of the driver's own area as well.
    """
    preferred = _preferences(plan, dataset)
    while True:
        messages = await _run(place, plan, origin, [*chain.from_iterable(preferred.values()), *arguments])
        unfit = [pattern for pattern in preferred if pattern.search(messages)]
        if not unfit:
            break
        for pattern in unfit:
            del preferred[pattern]
        await place.discard(*(f"{OUT}/{name}" for name in await place.list_output(dataset.name)))
    if plan.writing.bounds_option and OUT_OF_BOUNDS.search(messages):
        raise Rejection(OUT_OF_BOUNDS_WORDS.format(target=plan.target.title))


def _preferences(plan: ConversionPlan, dataset: Dataset) -> dict[re.Pattern[str], tuple[str, str]]:
    """Options by the message that says that they do not fit."""
    encoding, option = plan.writing.first_encoding, plan.writing.bounds_option
    area = bounds_of(plan, dataset) if option else None
    chosen = {UNENCODABLE: ("-lco", f"ENCODING={encoding}")} if encoding else {}
    return chosen | ({OUT_OF_BOUNDS: ("-lco", option.format(*area))} if area is not None else {})


async def _write_gathered(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    """Write one feature per line with a related driver, which keeps what the format's own drops, and join the lines."""
    dataset = plan.datasets[0]
    driver = plan.writing.lines_driver
    linear = LINEAR if dataset.linearise else ()
    fixed = ["-f", driver, "-unsetFid", *plan.writing.lines_options]
    arguments = [*fixed, *linear, *systems(plan, [dataset]), *origin.options]
    arguments += [LINES_FILE, origin.name]
    await place.ogr2ogr([*arguments, *origin.tables(plan, dataset)], (*origin.drivers, driver), origin.environment)
    title = json.dumps(dataset.name, ensure_ascii=False)
    await place.finish("gather", LINES_FILE, title, result_name(plan))


async def _write_at_once(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    z = plan.writing.z_options if any(dataset.declares_z for dataset in plan.datasets) else ()
    linear = LINEAR if any(dataset.linearise for dataset in plan.datasets) else ()
    name = ("-nln", plan.datasets[0].name) if len(plan.datasets) == 1 else ()
    attributes = plan.writing.root_attributes
    target = UNDECLARED_FILE if attributes else result_name(plan)
    arguments = [*opening(plan), *z, *linear, *systems(plan, plan.datasets), *origin.options, target]
    await _run(place, plan, origin, [*arguments, origin.name, *origin.tables(plan, *plan.datasets), *name])
    if attributes:
        await place.finish("declare", UNDECLARED_FILE, attributes, result_name(plan))


async def _write_places(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    dataset = plan.datasets[0]
    if not dataset.features:
        await place.write_text(result_name(plan), _header(dataset))
        return
    places = places_of(dataset)
    columns = len(places.types) + len(dataset.columns)
    may_be_uneven = columns == 1 or (len(dataset.columns) == 1 and dataset.layer.null_geometries)
    is_uneven = may_be_uneven and place.host.is_of(plan.writing.uneven_rows)
    target = UNEVEN_CSV if is_uneven else result_name(plan)
    arguments = [*opening(plan), *places.arguments, *systems(plan, [dataset]), *origin.options]
    await _run(place, plan, origin, [*arguments, target, origin.name, *origin.tables(plan, dataset)])
    if is_uneven:
        await place.finish("even", UNEVEN_CSV, result_name(plan), str(columns))


async def _write_workbook(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    """Write each dataset to CSV, with its geometry in columns; then all of them into sheets in one run.

    In one run, because the drivers rewrite the whole workbook for each sheet that is added. An open run writes the same
    cells directly, unless it would have to reproject.
    """
    session = place.session
    stays = not plan.wraps and not any(systems(plan, [each]) and plan.reprojects(each.layer) for each in plan.datasets)
    if session is not None and session.is_open and origin.is_shaped and stays:
        tables = [(table_of(plan, each), each.name, places_of(each).columns) for each in plan.datasets]
        await place.write_held(session, "sheets", result_name(plan), plan.writing.driver, *chain.from_iterable(tables))
        return
    sheets = [await _sheet(place, plan, origin, number) for number in range(len(plan.datasets))]
    await place.write_text(SHEETS_FILE, f"<OGRVRTDataSource>{''.join(sheets)}</OGRVRTDataSource>")
    arguments = [*opening(plan), "-nlt", "NONE", result_name(plan), SHEETS_FILE]
    drivers = (*origin.drivers, CSV_DRIVER, VIRTUAL_DRIVER, plan.writing.driver)
    await place.ogr2ogr(arguments, drivers, detour=SHEETS_FILE)


async def _sheet(place: Workplace, plan: ConversionPlan, origin: Origin, number: int) -> str:
    """The source of a sheet: a CSV that is written here, or the table itself if it is empty."""
    dataset = plan.datasets[number]
    if not dataset.features:
        return _sheet_layer(dataset, origin.name, table_of(plan, dataset))
    places = places_of(dataset)
    arguments = [*PLAIN_CSV, *places.arguments, *systems(plan, [dataset]), f"sheet{number}.csv", origin.name]
    await place.ogr2ogr([*arguments, *origin.tables(plan, dataset)], (*origin.drivers, CSV_DRIVER))
    types = [*places.types, *(CSV_TYPES.get(field.type, "String") for field in dataset.layer.fields)]
    await place.write_text(f"sheet{number}.csvt", ",".join(types))
    options = "".join(f'<OOI key="{key}">{value}</OOI>' for key, value in NO_PLACES.items())
    return _sheet_layer(dataset, f"sheet{number}.csv", f"sheet{number}", f"<OpenOptions>{options}</OpenOptions>")


def _sheet_layer(dataset: Dataset, file: str, layer: str, options: str = "") -> str:
    return (
        f"<OGRVRTLayer name={quoteattr(dataset.name)}><SrcDataSource>{file}</SrcDataSource>{options}"
        f"<SrcLayer>{escape(layer)}</SrcLayer><GeometryType>wkbNone</GeometryType></OGRVRTLayer>"
    )


def _header(dataset: Dataset) -> str:
    """The only line of a CSV without rows, which the driver would leave out. It cannot be read without any name."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([column.written for column in dataset.columns] or [WKT_COLUMN])
    return line.getvalue()


async def _write_tracks(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    """Write points as waypoints and lines as tracks. The driver goes by a layer's type; a VRT sets those of several."""
    multipoints = any("MultiPoint" in dataset.layer.geometry_types for dataset in plan.datasets)
    explode = ("-explodecollections",) if multipoints else ()
    arguments = [*opening(plan), *systems(plan, plan.datasets), *explode]
    if origin.is_shaped:
        (dataset,) = plan.datasets
        (family,) = dataset.layer.families
        kind = f"{TRACK_TYPES[family].upper()}{'25D' if dataset.declares_z else ''}"
        arguments += [*selection(plan, dataset, origin), "-nlt", kind, "-nln", f"{family}0"]
        arguments += [result_name(plan), origin.name]
        await _run(place, plan, origin, [*arguments, *origin.tables(plan, dataset)])
        return
    await place.write_text(TRACKS_FILE, _tracks(plan))
    await place.ogr2ogr(
        [*arguments, result_name(plan), TRACKS_FILE], (*origin.drivers, VIRTUAL_DRIVER, plan.writing.driver)
    )


def _tracks(plan: ConversionPlan) -> str:
    layers = [
        _track_layer(plan, dataset, f"{family}{number}", family)
        for family in TRACK_TYPES
        for number, dataset in enumerate(plan.datasets)
        if family in dataset.layer.families
    ]
    return f"<OGRVRTDataSource>{''.join(layers)}</OGRVRTDataSource>"


def _track_layer(plan: ConversionPlan, dataset: Dataset, name: str, family: Family) -> str:
    names = [column.written for column in dataset.columns]
    if family is Family.POINT and dataset.declares_z:
        names.append(plan.writing.elevation_column)
    listed = ", ".join([GEOMETRY, *map(quoted, names)])
    condition = is_one_of([geometry for geometry, found in FAMILIES.items() if found is family])
    query = f"SELECT {listed} FROM {quoted(table_of(plan, dataset))} WHERE {condition}"  # noqa: S608 -- quoted
    dimensions = "25D" if dataset.declares_z else ""
    return (
        f'<OGRVRTLayer name="{name}"><SrcDataSource>{WORK_FILE}</SrcDataSource>'
        f"<SrcSQL>{escape(query)}</SrcSQL><GeometryType>wkb{TRACK_TYPES[family]}{dimensions}</GeometryType>"
        "</OGRVRTLayer>"
    )


async def _write_wkt(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    dataset = plan.datasets[0]
    as_text = ("-lco", "GEOMETRY=AS_WKT", "-lco", "SEPARATOR=TAB", *LINEAR)
    arguments = [*PLAIN_CSV, *as_text, *systems(plan, [dataset]), *selection(plan, dataset, origin), LINES_CSV]
    await _run(place, plan, origin, [*arguments, origin.name, *selected_tables(plan, dataset, origin)])
    await place.finish("lines", LINES_CSV, result_name(plan))


async def _write_parquet(place: Workplace, plan: ConversionPlan, origin: Origin) -> None:
    if place.host.can_write(plan.writing.driver):
        await _write_per_layer(place, plan, origin)
        return
    dataset = plan.datasets[0]
    names = ("-lco", f"FID={FID}", "-lco", f"GEOMETRY_NAME={plan.geometry_name}", "-lco", "SPATIAL_INDEX=NO")
    linear = LINEAR if dataset.linearise else ()
    arguments = ["-f", WORK_DRIVER, "-unsetFid", *names, *linear]
    tables = origin.tables(plan, dataset)
    await place.ogr2ogr([*arguments, *systems(plan, [dataset]), REPROJECTED_FILE, origin.name, *tables], origin.drivers)
    named = (REPROJECTED_FILE, result_name(plan), dataset.name, "M" if dataset.layer.has_m else "")
    await place.python(PARQUET_WRITING, *named, result=VERIFIED_FILE)


async def _run(place: Workplace, plan: ConversionPlan, origin: Origin, arguments: Sequence[str]) -> str:
    environment = {**origin.environment, **plan.writing.environment}
    return await place.ogr2ogr(arguments, (*origin.drivers, plan.writing.driver), environment)


_WRITERS: Mapping[Writer, Callable[[Workplace, ConversionPlan, Origin], Awaitable[None]]] = {
    Writer.PER_LAYER: _write_per_layer,
    Writer.AT_ONCE: _write_at_once,
    Writer.PLACES: _write_places,
    Writer.WORKBOOK: _write_workbook,
    Writer.TRACKS: _write_tracks,
    Writer.LINES_OF_WKT: _write_wkt,
    Writer.PARQUET: _write_parquet,
}
