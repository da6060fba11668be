"""Decides what to write for one file: the datasets, their names, types and columns, and what is lost.

Pure: everything is decided from facts before anything is written. A refusal therefore costs no conversion, and the
warnings describe what the commands do.
"""

from collections.abc import Sequence
from functools import cached_property

import msgspec

from service.errors import Rejection
from service.formats.crs import WGS84, CrsCatalogue
from service.formats.datasets import (
    Dataset,
    make_datasets,
    needs_flattening,
    needs_splitting,
    of_any_type,
    written_names,
)
from service.formats.dateline import (
    has_parts_beyond,
    is_cut_blindly,
    is_harmed_by_cutting,
    is_on_map,
    is_to_be_cut,
    is_to_be_cut_there,
    is_within_datelines,
    may_be_cut,
    may_be_wound,
    spans_map,
)
from service.formats.facts import MAX_LAYERS, Facts, Layer
from service.formats.format import Format, Reading, Writer, Writing, reading_of, writing_of
from service.formats.geometry import Family
from service.formats.layers import choose_layers
from service.formats.losses import exchanged_rings, find_losses, refuse_unrepresentable, told_of_reading
from service.formats.names import free_name
from service.formats.request import ConversionRequest
from service.formats.source import Source
from service.formats.systems import Systems, choose_systems
from service.formats.values import KNOWN_BY_SCAN, reading_warnings

GEOMETRY_NAMES = ("geometry", "geom", "the_geom")
MAX_DATASETS = 300
"""More would take minutes: each run reads through all existing layers."""
ONE_BY_ONE = frozenset({Writer.PER_LAYER, Writer.WORKBOOK})
DIRECT_WRITERS = frozenset({Writer.PER_LAYER, Writer.AT_ONCE, Writer.PLACES})


class ConversionPlan(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What to write, and what to report about it. `direct` plans read the upload, others the work file."""

    target: Format
    datasets: tuple[Dataset, ...]
    stem: str
    source_epsg: int | None
    output_epsg: int | None
    direct: bool
    keeps_coordinates: bool = False
    """Whether coordinates in an unknown system are written unchanged and without a system."""
    warnings: tuple[str, ...] = ()
    fid_name: str = ""
    geometry_name: str = ""
    wraps: bool = False
    """Whether geometries must be cut at the date line."""
    moves_parts: bool = False
    """Whether parts of geometries that lie beyond the date line are moved around the Earth before."""
    gathers_lines: bool = False
    """Whether the document is joined from lines, which preserves collections and Multi geometries."""
    is_in_place: bool = False
    """Whether there are only flat points, in the system and the area of the result already, so that its driver need
    not copy each to move it or to look for the date line."""
    is_wound: bool = False
    """Whether edges may lead around the Earth in the result that in the file are the shortest way between their ends.
    All of them are cut then; otherwise, drivers cut at the date line only what is near it on both sides."""
    in_degrees: bool = False
    within_datelines: bool = False
    """Whether the output is in degrees that are all within 180 degrees of Greenwich."""

    @property
    def converted(self) -> Facts:
        """The facts about what is converted: its layers, without those left out."""
        layers = {dataset.layer.name: dataset.layer for dataset in self.datasets}
        return Facts(layers=tuple(layers.values()))

    @property
    def leaves_out_control(self) -> bool:
        """Whether texts have characters that the target cannot hold, of which its driver leaves out only some."""
        return any(_has_control(self.writing, dataset.layer) for dataset in self.datasets)

    @property
    def guards_texts(self) -> bool:
        """Whether texts must be changed: they begin like what programs execute or take for markup, or have escapes."""
        guarded = self.writing.value_losses & {"like_markup", "like_formulas", "like_escapes"}
        fields = [field for dataset in self.datasets for field in dataset.layer.fields]
        return any(getattr(field, what) for field in fields for what in guarded)

    @property
    def escapes_texts(self) -> bool:
        """Whether programs take codes in the target's texts for characters, so that texts with such must be escaped."""
        return "like_escapes" in self.writing.value_losses

    @property
    def cuts(self) -> bool:
        """Whether what lies across the date line is cut there: lines if they are near it on both sides, and areas."""
        return self.wraps or (bool(self.writing.lines_driver) and not self.gathers_lines)

    def reprojects(self, layer: Layer) -> bool:
        """Whether the coordinates of a layer become those of another system."""
        return not self.keeps_coordinates and self.output_epsg != (self.source_epsg or layer.crs.epsg)

    @cached_property
    def writing(self) -> Writing:
        """How the target is written."""
        return writing_of(self.target)


def plan_conversion(
    source: Source, target: Format, facts: Facts, request: ConversionRequest, catalogue: CrsCatalogue
) -> ConversionPlan:
    """Decide what to write.

    Args:
        source: the upload.
        target: the format that `choose_target` returned.
        facts: what the upload contains, from the work file, or from a scan if `can_go_direct` is true.
        request: what the client asks for.
        catalogue: the known coordinate systems.

    Raises:
        MultipleLayers: the input holds several layers and the target stores one.
        Rejection: the target cannot represent the data, or a coordinate system is unknown or unusable.
    """
    reading, writing = reading_of(source.format), writing_of(target)
    layers, left_out = choose_layers(source.format, target, facts, request)
    _refuse_many(target, len(layers))
    systems = choose_systems(target, layers, request, catalogue)
    refuse_unrepresentable(target, layers)
    if systems.output_epsg is not None and not catalogue.is_plane(systems.output_epsg):
        _refuse_flat(target, layers, systems.output_epsg)
    datasets = make_datasets(target, source.stem, layers)
    if systems.output_epsg is not None:
        datasets = tuple(_uncut(writing, dataset, systems, systems.output_epsg, catalogue) for dataset in datasets)
    _refuse_many(target, len(datasets))
    told = told_of_reading(target, facts)
    warnings = (*told, *left_out, *systems.warnings, *reading_warnings(source.format, layers))
    exchanged = exchanged_rings(layers) if reading.directs_rings else ()
    plan = ConversionPlan(
        target=target,
        datasets=datasets,
        stem=source.stem,
        source_epsg=systems.source_epsg,
        output_epsg=systems.output_epsg,
        keeps_coordinates=systems.keeps_coordinates,
        direct=not facts.in_work_file or _is_json_to_json(reading, writing, facts),
        warnings=(*warnings, *find_losses(target, datasets), *exchanged),
    )
    return _with_dateline(_with_names(plan), layers, catalogue, is_shortest=reading.shortest_edges)


def _uncut(writing: Writing, dataset: Dataset, systems: Systems, output_epsg: int, catalogue: CrsCatalogue) -> Dataset:
    """`dataset` as one that holds areas of several parts, if the converter may cut some."""
    source = systems.source_epsg or dataset.layer.crs.epsg
    is_cut = may_be_cut(dataset.layer, source, output_epsg, catalogue)
    return of_any_type(writing, dataset) if is_cut else dataset


def most_to_read(target: Format, request: ConversionRequest) -> int:
    """How many layers with features to read of an upload: with so many it is refused, however many others it holds."""
    writing = writing_of(target)
    is_limited = writing.writer in ONE_BY_ONE and writing.multi_layer and request.layer is None
    return MAX_DATASETS + 1 if is_limited else MAX_LAYERS + 1


def can_go_direct(source: Source, target: Format, facts: Facts) -> bool:
    """Whether a run directly from the upload has the same result as one from the work file.

    This holds for GeoJSON whose names fit the target and whose features fit one dataset. `facts` may then come from a
    scan of the text instead of a work file.
    """
    reading, writing = reading_of(source.format), writing_of(target)
    if _is_json_to_json(reading, writing, facts):
        return True
    return (
        reading.json
        and len(facts.layers) == 1
        and writing.writer in DIRECT_WRITERS
        and writing.attributes is None
        and not writing.shows_geometry_name
        and writing.value_losses <= KNOWN_BY_SCAN
        and all(_fits(writing, layer) and not _has_control(writing, layer) for layer in facts.layers)
    )


def _is_json_to_json(reading: Reading, writing: Writing, facts: Facts) -> bool:
    """Between JSON formats, only a direct run preserves lists, and values that are missing and not null."""
    known = facts.in_work_file or not any(is_cut_blindly(writing, layer) for layer in facts.layers)
    is_beyond = any(has_parts_beyond(writing, layer) for layer in facts.layers)
    return reading.json and writing.json and len(facts.layers) == 1 and known and not is_beyond


def _has_control(writing: Writing, layer: Layer) -> bool:
    return "control" in writing.value_losses and any(field.control for field in layer.fields)


def _fits(writing: Writing, layer: Layer) -> bool:
    names = [field.name for field in layer.fields]
    distinct = len(set(map(str.casefold, names))) == len(names)
    keeps_names = written_names(writing, layer) == tuple(names)
    keeps_all = writing.null_geometry or not layer.null_geometries
    is_cut = is_cut_blindly(writing, layer) or has_parts_beyond(writing, layer)
    is_split = needs_splitting(writing, layer) or needs_flattening(writing, layer)
    whole = keeps_all and not is_split and not is_cut
    return distinct and keeps_names and whole and not layer.has_curves


def _with_names(plan: ConversionPlan) -> ConversionPlan:
    """Name the columns that the target adds so that they hide none of the data."""
    written = [column.written for dataset in plan.datasets for column in dataset.columns]
    fid_names, geometry_names = plan.writing.fid_names, plan.writing.geometry_names or GEOMETRY_NAMES
    return msgspec.structs.replace(
        plan,
        fid_name=free_name(fid_names, written) if fid_names else "",
        geometry_name=free_name(geometry_names, written),
    )


def _with_dateline(
    plan: ConversionPlan, layers: Sequence[Layer], catalogue: CrsCatalogue, *, is_shortest: bool
) -> ConversionPlan:
    """Decide what geometries that cross the date line, or do not, require or allow.

    `is_shortest` is whether an edge from one side of the map to the other crosses the date line; else it spans the map.
    """
    spatial = [layer for layer in layers if layer.is_spatial]
    in_degrees = plan.output_epsg is not None and catalogue.is_geographic(plan.output_epsg)
    pairs = [(layer, plan.source_epsg or layer.crs.epsg) for layer in spatial]
    output = plan.output_epsg or WGS84
    reading = plan.target.reading
    goes_on = reading is not None and reading.shortest_edges
    is_wound = is_shortest and not goes_on and any(map(may_be_wound, spatial))
    is_cut = any(
        is_to_be_cut(layer, is_wound=is_wound) or is_to_be_cut_there(layer, source, output, catalogue)
        for layer, source in pairs
    )
    is_harmed = is_wound or any(
        is_harmed_by_cutting(layer) or (not is_shortest and spans_map(layer, source, catalogue))
        for layer, source in pairs
    )
    return msgspec.structs.replace(
        plan,
        is_wound=is_wound,
        wraps=is_cut and (plan.writing.wraps_dateline or (is_wound and bool(plan.writing.lines_driver))),
        moves_parts=any(
            has_parts_beyond(plan.writing, layer) and (source is None or catalogue.is_in_degrees(source))
            for layer, source in pairs
        ),
        gathers_lines=bool(plan.writing.lines_driver) and is_harmed,
        is_in_place=bool(spatial) and not plan.direct and all(_is_in_place(plan, layer) for layer in spatial),
        in_degrees=in_degrees,
        within_datelines=in_degrees and all(map(is_within_datelines, spatial)),
    )


def _is_in_place(plan: ConversionPlan, layer: Layer) -> bool:
    recorded = layer.crs.epsg if layer.crs.known else None
    are_flat_points = layer.families == {Family.POINT} and not (layer.has_z or layer.has_m)
    return are_flat_points and (plan.source_epsg or recorded) == plan.output_epsg == WGS84 and is_on_map(layer)


def _refuse_flat(target: Format, layers: Sequence[Layer], epsg: int) -> None:
    """Refuse geometries without elevations in a system with a third axis if the result could not be read."""
    is_flat = any(layer.is_spatial and (not layer.has_z or layer.flat_geometries) for layer in layers)
    if writing_of(target).needs_every_axis and is_flat:
        raise Rejection(
            f"EPSG:{epsg} has a third axis, and programs cannot read {target.title} in it unless every point has an "
            "elevation. Choose the plane system that belongs to it as targetEpsg, such as 4326 for 4979."
        )


def _refuse_many(target: Format, datasets: int) -> None:
    """Refuse more layers than can be written one by one: each takes longer the more there are."""
    if writing_of(target).writer in ONE_BY_ONE and datasets > MAX_DATASETS:
        raise Rejection(
            f"The file holds more than {MAX_DATASETS} layers; at most {MAX_DATASETS} are written as {target.title}. "
            "Name one in the field layer, or split the file."
        )
