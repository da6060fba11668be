"""Finds features that stray or are torn: in the run that is open, or by SQL on a copy (`service.formats.straying`)."""

from collections.abc import Sequence
from math import isinf
from struct import pack
from typing import Annotated

from msgspec import Meta

from service.engine.arguments import Origin, cutting
from service.engine.jailed.gpkg import FID, GEOMETRY
from service.engine.reading.work_file import ADD, INTO_WORK_FILE, UNGROUPED, WORK_DRIVER, facts_of
from service.engine.session import Answer
from service.engine.workspace import Workplace
from service.formats.crs import WGS84, CrsCatalogue
from service.formats.datasets import Dataset
from service.formats.facts import MAX_LAYERS
from service.formats.plan import ConversionPlan
from service.formats.straying import Astray, Strays, meters_apart

COPY_FILE = "copy.gpkg"
COPY, CUT, WRITTEN, PARTS = "copy", "cut", "written", "parts"
STRAYS_FILE = "strays.gpkg"
POLE = 90
DEGREES_A_METER = 1e-5
"""See straying.c, which does this in a run that is open."""
METERS_AROUND = 4e7
"""How long the Earth is around."""
ORIGIN_METERS = 5e7
"""The greatest x of an origin: the number of a zone may precede its coordinates, as in 47,500,000."""
EDGES = ("MinX", "MaxX", "MinY", "MaxY")
HALF_WAY_AROUND = {True: 180.0, False: METERS_AROUND / 2}
"""Half of the map in a system of degrees, and in others."""
TORN = 1.5
"""How many halves of the map what is torn spans to one side; near a pole, others may span one."""
FOUND = ("strays", "first", "torn", "first_torn", "lost", "first_lost")
"""What the query finds, in the order of `Strays`."""


class _Strayed(Answer, frozen=True):
    layers: Annotated[tuple[Strays, ...], Meta(max_length=MAX_LAYERS)]


async def ask_strays(
    place: Workplace, plan: ConversionPlan, origin: Origin, datasets: Sequence[Dataset], catalogue: CrsCatalogue
) -> Astray:
    """How many features of `datasets` stray or are torn in the result of `plan`; before the open run writes it.

    The run then uses the same transformation for both, and making one takes most of the time of a small conversion.

    Raises:
        SessionOver: the run ended.
    """
    if place.session is None or not datasets:
        return ()
    names = origin.tables(plan, *datasets)
    meters = max(meters_apart(plan, dataset.layer, catalogue) for dataset in datasets)
    codes = (str(plan.source_epsg or 0), str(plan.output_epsg))
    reach = map(str, catalogue.reach(plan.output_epsg or 0))
    told = await place.session.ask(
        _Strayed, "stray", *codes, str(meters), *reach, str(int(plan.cuts)), str(int(plan.is_wound)), *names
    )
    return tuple(zip(datasets, told.layers, strict=False))


async def count_strays(
    place: Workplace, plan: ConversionPlan, origin: Origin, datasets: Sequence[Dataset], catalogue: CrsCatalogue
) -> Astray:
    """The same without a run that is open.

    Raises:
        Rejection: counting them exceeds the limits.
    """
    return tuple([(dataset, await _count(place, plan, origin, dataset, catalogue)) for dataset in datasets])


async def _count(
    place: Workplace, plan: ConversionPlan, origin: Origin, dataset: Dataset, catalogue: CrsCatalogue
) -> Strays:
    """Copy the layer with its system, which it may not record, to the other system, too; and the parts of both."""
    assigned = ["-a_srs", f"EPSG:{plan.source_epsg}"] if plan.source_epsg else []
    arguments = [*INTO_WORK_FILE, *assigned, *origin.options, COPY_FILE, origin.name]
    arguments += [*origin.tables(plan, dataset), "-nln", COPY]
    added = [*INTO_WORK_FILE, *ADD, COPY_FILE, COPY_FILE]
    wrap = cutting(plan) if plan.cuts else ()
    written = [*added, COPY, "-nln", WRITTEN, "-preserve_fid", "-t_srs", f"EPSG:{plan.output_epsg}", *wrap]
    whole = CUT if plan.is_wound else COPY
    numbered = " UNION ALL ".join(
        f"SELECT {FID} + 0 AS number, {is_written} AS is_written, {GEOMETRY} FROM {table}"  # noqa: S608 -- ours
        for is_written, table in enumerate((whole, WRITTEN))
    )
    query = _query(plan, dataset, catalogue)
    try:
        await place.ogr2ogr(arguments, (*origin.drivers, WORK_DRIVER), origin.environment)
        await place.ogr2ogr(written, (WORK_DRIVER,))
        if plan.is_wound:
            await place.ogr2ogr([*added, COPY, "-nln", CUT, "-preserve_fid", *cutting(plan)], (WORK_DRIVER,))
        await place.ogr2ogr([*added, "-nln", PARTS, "-explodecollections", "-sql", numbered], (WORK_DRIVER,))
        await place.ogr2ogr([*UNGROUPED, "-nln", COPY, "-sql", query, STRAYS_FILE, COPY_FILE], (WORK_DRIVER,))
        (layer,) = (await facts_of(place, STRAYS_FILE)).layers
    finally:
        await place.discard(COPY_FILE, STRAYS_FILE)
    found = {field.name: int(field.total or 0) for field in layer.fields}
    return Strays(*(found.get(name, 0) for name in FOUND))


def _query(plan: ConversionPlan, dataset: Dataset, catalogue: CrsCatalogue) -> str:
    """Compare the extents of features with those that the way back leads to, and with those of what was written.

    All go there before the first goes back: the driver keeps one transformation, and makes another in milliseconds. A
    feature is torn if a part spans more than half of the map as written, to no side of it, and none does here, or,
    where edges are the shortest way, in the cut copy. It also is if the part spans so much to one side that an edge on
    the date line was taken for one on the other side.
    """
    source, output = plan.source_epsg or dataset.layer.crs.epsg, plan.output_epsg or 0
    in_degrees = source is not None and catalogue.is_geographic(source)
    meters = meters_apart(plan, dataset.layer, catalogue)
    beside = " OR ".join(_differ(edge, meters, in_degrees=in_degrees) for edge in EDGES)
    least, most = catalogue.reach(output)
    if isinf(most):
        most = METERS_AROUND + ORIGIN_METERS
        least = -most
    beyond = (
        f"ST_MinX(new) < {least} OR ST_MaxX(new) > {most} OR ST_MinY(new) < -{METERS_AROUND} "
        f"OR ST_MaxY(new) > {METERS_AROUND}"
    )
    there = (
        f"SELECT {FID} AS number, {GEOMETRY} AS old, ST_Transform({GEOMETRY}, {output}) AS new FROM {COPY} "  # noqa: S608 -- ours
        f"WHERE {GEOMETRY} IS NOT NULL"
    )
    strays = (
        f"SELECT number FROM (WITH there AS MATERIALIZED ({there}) "  # noqa: S608 -- ours
        "SELECT number, old, new, ST_Transform(new, ST_SRID(old)) AS back FROM there LIMIT -1 OFFSET 0) "
        f"WHERE back IS NULL OR {beside} OR {beyond}"
    )
    width, height = (f"(ST_Max{axis}({GEOMETRY}) - ST_Min{axis}({GEOMETRY}))" for axis in "XY")
    half, half_there = HALF_WAY_AROUND[in_degrees], HALF_WAY_AROUND[catalogue.is_geographic(output)]
    one_side = f"ST_MinX({GEOMETRY}) > -{half_there} AND {width} >= {TORN * half_there}"
    wide = f"{width} > {half_there} AND (ST_MaxX({GEOMETRY}) <> {half_there} OR {one_side})"
    torn = (
        f"SELECT number FROM {PARTS} WHERE is_written AND {wide} EXCEPT "  # noqa: S608 -- ours
        f"SELECT number FROM {PARTS} WHERE NOT is_written AND max({width}, {height}) > {half}"
    )
    queries = [strays, torn, *([_losing(meters)] if not in_degrees and catalogue.is_geographic(output) else ())]
    counted = [
        f"(SELECT count(*) AS {count}, min(number) AS {first} FROM ({query}))"  # noqa: S608 -- ours
        for count, first, query in zip(FOUND[::2], FOUND[1::2], queries, strict=False)
    ]
    return f"SELECT * FROM {', '.join(counted)}"  # noqa: S608 -- ours


def _losing(meters: int) -> str:
    """Find what has a pole in its extent and less extent in the result, or is an area around it that does not reach it.

    Edges of areas are not lost, and the sides of the map, to which an area around a pole is cut, are far apart.
    """
    transformed = f"ST_Transform({{}}, (SELECT ST_SRID({GEOMETRY}) FROM {COPY} LIMIT 1))"  # noqa: S608 -- ours
    places = " UNION ALL ".join(
        f"SELECT {latitude} AS latitude, {transformed.format(_place(0, latitude))} AS pole, "
        f"{transformed.format(_place(POLE, latitude))} AS same"
        for latitude in (-POLE, POLE)
    )
    is_one = " AND ".join(f"abs(ST_Min{axis}(pole) - ST_Min{axis}(same)) <= {meters}" for axis in "XY")
    both = (
        f"SELECT o.{FID} AS number, o.{GEOMETRY} AS old, n.{GEOMETRY} AS made, "  # noqa: S608 -- ours
        f"ST_Transform(n.{GEOMETRY}, ST_SRID(o.{GEOMETRY})) AS back FROM {COPY} o, {WRITTEN} n WHERE n.{FID} = o.{FID}"
    )
    is_in = " AND ".join(
        f"ST_Min{axis}(pole) BETWEEN ST_Min{axis}(old) - {meters} AND ST_Max{axis}(old) + {meters}" for axis in "XY"
    )
    is_less = " OR ".join(
        f"ST_Min{axis}(back) > ST_Min{axis}(old) + {meters} OR ST_Max{axis}(back) < ST_Max{axis}(old) - {meters}"
        for axis in "XY"
    )
    latitude = f"max(latitude / {POLE} * ST_MinY(made), latitude / {POLE} * ST_MaxY(made))"
    is_around = f"ST_GeometryType(old) LIKE '%POLYGON' AND ST_MaxX(made) - ST_MinX(made) >= {2 * HALF_WAY_AROUND[True]}"
    return (
        f"SELECT number FROM ({places}), ({both}) WHERE {is_one} AND {is_in} "  # noqa: S608 -- ours
        f"AND (ST_MinX(back) IS NULL OR {is_less} OR ({is_around} AND {latitude} < {POLE - meters * DEGREES_A_METER}))"
    )


def _place(longitude: int, latitude: int) -> str:
    """A point in degrees, as GeoPackages hold it, in SQL."""
    return f"X'{pack('<2sBBiBIdd', b'GP', 0, 1, WGS84, 1, 1, longitude, latitude).hex()}'"


def _differ(edge: str, meters: int, *, in_degrees: bool) -> str:
    """Degrees of longitude are shorter at high latitudes, and a turn of them makes no difference."""
    apart = f"abs(ST_{edge}(old) - ST_{edge}(back))"
    if not in_degrees:
        return f"{apart} > {meters}"
    degrees = meters * DEGREES_A_METER
    if edge.endswith("Y"):
        return f"{apart} > {degrees}"
    shrunk = "max(0, 1 - ST_MinY(old) * ST_MinY(old) / 8100)"
    crosses = "(ST_MinX(old) < -180 OR ST_MaxX(old) > 180)"
    return f"(min({apart}, abs({apart} - 360)) * {shrunk} > {degrees} AND NOT {crosses})"
