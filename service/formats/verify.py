"""Compares what was read back from a result with its plan. Pure.

A reader in the sandbox counts `ReadBack` in a result, whichever program it is. A difference that no earlier warning
covers is reported with its count.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from service.errors import Rejection
from service.formats.datasets import Dataset
from service.formats.facts import MAX_COLUMNS, MAX_LAYERS, MOST_COMMAS, UNSET, Count, Facts, Field, Name
from service.formats.format import Writing
from service.formats.names import counted, listed, quotes, shown
from service.formats.plan import ConversionPlan

RELATIVE = 1e-6
"""How much the sum of a column may differ: formats round at the fifteenth digit, a loss is larger."""

UNITS_APART = 0.5
DEGREES_APART = 1e-5
"""How far apart two systems may place features, in units of one, or in degrees, to count as the same."""


class VerifiedColumn(msgspec.Struct, frozen=True, gc=False):
    """A column of a result: how many values are not null, and, for numbers, the sum of their absolute values."""

    filled: Count | None = None
    total: float | None = None


class VerifiedLayer(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A layer of a result; None stands for what its reader does not report."""

    features: Count
    geometries: Count | None = None
    has_z: bool | None = None
    has_m: bool | None = None
    columns: Annotated[Mapping[Name, VerifiedColumn], Meta(max_length=2 * MAX_COLUMNS)] | None = None
    stops_after: Count | None = None
    """How many features its driver reads, if that stops before the end; 0 if that is not known."""


class Recorded(msgspec.Struct, frozen=True):
    """The coordinate system that a result records: whether it does, and how far it is from the planned one.

    `moved` is the distance, in units of the planned system, between features as they are and as the recorded system
    places them. `unknown_datum` is the name by which PROJ does not know the datum that it has there.
    """

    is_known: bool = True
    moved: float = 0.0
    unknown_datum: str = ""


class ReadBack(msgspec.Struct, frozen=True):
    """A result as read back: its layers by the names of their datasets."""

    most_commas: ClassVar[int] = MOST_COMMAS
    layers: Annotated[Mapping[Name, VerifiedLayer], Meta(max_length=2 * MAX_LAYERS)] = {}
    beyond_utc: Annotated[Mapping[Name, tuple[Count, Count]], Meta(max_length=MAX_COLUMNS)] = {}
    """By column: how many times in other zones have no four-digit year in UTC, and the first such feature."""
    recorded: Recorded = Recorded()


def compare(plan: ConversionPlan, verified: ReadBack) -> tuple[str, ...]:
    """What differs between the `plan` and what was read back, as warnings.

    Raises:
        Rejection: all features or all geometries of a layer are lost, which makes the result useless.
    """
    pairs = [(dataset, verified.layers.get(dataset.name)) for dataset in plan.datasets]
    measured = {dataset.layer.name for dataset, found in pairs if found is not None and found.has_m}
    differences = (warning for pair in pairs for warning in _differences(plan, *pair, measured))
    return (*differences, *_beyond_utc(verified), *_system_differences(plan, verified.recorded))


def unturned_holes(plan: ConversionPlan) -> Iterator[str]:
    """Of the layers in which a driver may have made areas of holes, and these do not follow from their rings."""
    unclear = [dataset for dataset in plan.datasets if dataset.has_areas_in_space and dataset.has_unclear_holes]
    if unclear:
        names = listed(quotes(dataset.name for dataset in unclear))
        yield (
            f"Some rings in {names} could be either holes or areas, so holes with elevations, even of other areas "
            "there, may have become separate areas. Repair these rings and send the file again, or choose another "
            "outputFormat, such as GeoPackage."
        )


def _differences(
    plan: ConversionPlan, dataset: Dataset, found: VerifiedLayer | None, measured: set[str]
) -> Iterator[str]:
    """As `compare`, of one dataset. `measured` are the layers of which another dataset, or this one, has measures."""
    writing, name = plan.writing, shown(dataset.name)
    features, geometries = expected_in(writing, dataset)
    if found is None:
        if features:
            whole = f"complete, with {counted(features, 'feature')}"
            yield f"{name!r} could not be read back, so it is not proven that it is {whole}."
        return
    _refuse_empty(plan, name, found, (features, geometries))
    splits = writing.splits & dataset.layer.geometry_types.keys()
    if found.features != features and not splits:
        yield f"When read back, {name!r} holds {counted(found.features, 'feature')}; {_expected_were(features)}."
        return  # all other differences follow from it
    if found.stops_after is not None:
        part = f"{found.stops_after:,}" if found.stops_after else "some"
        yield (
            f"{name!r} holds all its {features:,} features, but programs such as QGIS read only {part} of them "
            f"from {plan.target.title}. For these, choose another outputFormat."
        )
        return
    if found.geometries is not None and found.geometries != geometries and not splits:
        have = f"{counted(found.geometries, 'feature')} of {name!r} {'has' if found.geometries == 1 else 'have'}"
        yield f"When read back, {have} geometry; {_expected_were(geometries)}."
    if geometries:
        dimensions = dataset.dimensions(writing)
        if writing.z and "Z" in dimensions and found.has_z is False:
            yield f"When read back, {name!r} has no elevations; they were lost."
        may_lack_measures = dataset.layer.name in measured and geometries <= dataset.layer.unmeasured_geometries
        if "M" in dimensions and found.has_m is False and not may_lack_measures:
            yield f"When read back, {name!r} has no measures (M); they were lost."
    if found.columns is not None and writing.attributes is None:
        yield from _column_differences(writing, dataset, found.columns)


def _system_differences(plan: ConversionPlan, recorded: Recorded) -> Iterator[str]:
    title, system = plan.target.title, f"EPSG:{plan.output_epsg}"
    if not recorded.is_known:
        yield (
            f"{title} cannot record {system}: the coordinates are in it, but programs that open the result will not "
            "know. Choose another targetEpsg, such as 4326."
        )
    elif recorded.moved > (DEGREES_APART if plan.within_datelines else UNITS_APART):
        far = f"{recorded.moved:,.0f}" if recorded.moved >= 1 else f"{recorded.moved:.3g}"
        yield (
            f"{title} cannot record {system} exactly: the coordinates are in it, but programs that open the result "
            f"will place them up to {far} of its units elsewhere. Choose another targetEpsg, such as 4326."
        )
    elif recorded.unknown_datum:
        yield (
            f"{title} records {system}, but programs such as QGIS read its datum as "
            f"{shown(recorded.unknown_datum)!r} there and do not know that: they may place the result hundreds of "
            "meters elsewhere. Choose another targetEpsg for them, such as 4326."
        )


def _beyond_utc(verified: ReadBack) -> Iterator[str]:
    for name, (count, first) in verified.beyond_utc.items():
        yield (
            f"In UTC, {counted(count, 'time')} in {shown(name)!r} are before the year 0 or after 9999, first in "
            f"feature {first:,}. They were kept without their time zones, so they are other moments now."
        )


def _refuse_empty(plan: ConversionPlan, name: str, found: VerifiedLayer, expected: tuple[int, int]) -> None:
    features, geometries = expected
    remedy = f"Nothing was counted; choose another outputFormat than {plan.target.title}."
    if features and not found.features:
        raise Rejection(f"The result was read back and holds none of the {features:,} features of {name!r}. {remedy}")
    if geometries and found.geometries == 0:
        raise Rejection(
            f"The result was read back and none of the {geometries:,} features of {name!r} has its geometry. {remedy}"
        )


def expected_in(writing: Writing, dataset: Dataset) -> tuple[int, int]:
    """How many features are expected in the result, and how many with geometry."""
    nulls = dataset.layer.null_geometries if dataset.takes_nulls else 0
    geometries = dataset.features - nulls
    return (dataset.features if writing.null_geometry else geometries), geometries


def _column_differences(writing: Writing, dataset: Dataset, columns: Mapping[str, VerifiedColumn]) -> Iterator[str]:
    name = shown(dataset.name)
    written = {column.name: column.written for column in dataset.columns}
    missing = [
        field
        for field in dataset.layer.fields
        if field.name in written and _is_kept(writing, field) and written[field.name] not in columns
    ]
    if missing and (dataset.features or writing.empty_columns):
        kind = "columns" if any(field.filled != 0 for field in missing) else "columns without any value"
        yield f"When read back, {name!r} lacks {kind}: {listed(quotes(field.name for field in missing))}."
    if dataset.only_types or expected_in(writing, dataset)[0] != dataset.layer.features:
        return  # values are counted per layer, not for a part of its features
    for field in dataset.layer.fields:
        found = columns.get(written.get(field.name, ""))
        if found is not None and _is_kept(writing, field) and field.filled is not None:
            yield from _value_differences(writing, field, found)


def _expected_were(count: int) -> str:
    return f"{count:,} {'was' if count == 1 else 'were'} expected"


def _is_kept(writing: Writing, field: Field) -> bool:
    """Whether the column is written unchanged; one of infinite numbers may be left out, with a warning of its own."""
    becomes_infinite = field.near_infinite and "near_infinite" in writing.value_losses
    return not (field.infinite or becomes_infinite)


def _value_differences(writing: Writing, field: Field, found: VerifiedColumn) -> Iterator[str]:
    unset = field.like_unset if "like_unset" in writing.value_losses and not field.beyond_32_bits else 0
    filled = (field.filled or 0) - (field.empty if writing.empty_is_null else 0) - unset
    if found.filled is not None and not filled - field.nans <= found.filled <= filled:
        blank = 0 < filled - found.filled <= min(field.leading_blanks, field.trailing_blanks)
        yield (
            f"When read back, {shown(field.name)!r} has {counted(found.filled, 'filled value')}; "
            f"{_expected_were(filled)}."
            f"{' The others are probably texts of blanks alone, which became missing.' if blank else ''}"
        )
    exact = not (field.inexact_in_dbf or field.beyond_dbf or field.beyond_53_bits)
    if found.total is not None and field.total is not None and exact:
        total = field.total - abs(UNSET) * unset
        if abs(found.total - total) > RELATIVE * max(abs(found.total), abs(total)):
            yield f"When read back, the numbers in {shown(field.name)!r} add up differently; some were changed."


def verified_from(facts: Facts, dataset: Dataset) -> ReadBack:
    """What was read back from a result of one layer, given as `facts`, whose columns only features reveal."""
    layer = facts.layers[0]
    columns = {field.name: VerifiedColumn(field.filled) for field in layer.fields} if layer.features else None
    found = VerifiedLayer(
        features=layer.features, geometries=sum(layer.geometry_types.values()), has_z=layer.has_z, columns=columns
    )
    return ReadBack({dataset.name: found})
