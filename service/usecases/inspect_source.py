"""Determines what a source contains, in the cheapest correct way.

GeoJSON is scanned as text, which the data-loss report needs anyway. That suffices if the target can be written directly
from the upload. Any other source or target goes through the converter's work file.
"""

from functools import partial
from pathlib import Path

import msgspec

from sandbox.command import Command
from service.blocking import run_blocking, run_for_columns
from service.engine.convert import UNASKED, Engine
from service.engine.diagnostics import Subject, require_program_success
from service.engine.environment import python_environment
from service.engine.workspace import Run
from service.errors import NoRoom, Rejection
from service.formats.crs import WGS84
from service.formats.facts import Crs, Facts, Flaw
from service.formats.format import Format, Reader, reading_of, writing_of
from service.formats.into_utf8 import require_utf8
from service.formats.json_kinds import head_of
from service.formats.other_kinds import refuse_other_json
from service.formats.plan import can_go_direct, most_to_read
from service.formats.request import ConversionRequest
from service.formats.source import Part, Source
from service.formats.systems import is_projected
from service.geojson import scan as scan_program
from service.geojson.findings import Scan, read_scan
from service.geojson.normalize import mode_for, normalize
from service.geojson.refusals import Reason, Unreadable
from service.geojson.scan import EDGES, is_quick, read_light, scan_bytes
from service.geojson.warnings import reading_warnings

SCAN_FILE = "scan.json"
NORMALIZED_FILE = "normalized"
NORMALIZED_EXTENSION = ".geojson"
MISREAD = frozenset({Reason.OTHER_LINES, Reason.TRUNCATED, Reason.NOT_GEOJSON, Reason.NOT_UTF8})
"""Why a document cannot be analyzed although the converter may read a part of it, or copy it, without an error."""
BETTER_TOLD = frozenset({Reason.NOT_JSON, Reason.EMPTY, Reason.BAD_GEOMETRY})
"""Why a document cannot be analyzed, in better words than those of the converter if it refuses it too."""
UNKNOWN_JSON = frozenset({Reason.NOT_GEOJSON, Reason.ESRI_JSON})
"""Why a document is none that this service converts, unless the converter reads it as Esri JSON."""
UNFIT_NAMES = frozenset({Reason.TOO_MANY_FIELDS, Reason.LONG_NAMES, Reason.ZERO_IN_NAMES})
"""Why a document cannot be analyzed of whose properties the converter would make too many columns, or wrong ones."""
_FAULTY = frozenset({Flaw.UNCLOSED, Flaw.SINGLE})
JAILED_PROGRAMS = (scan_program.__name__,)
"""The modules that run in the sandbox, for a launcher that keeps them loaded."""


class Inspection(msgspec.Struct, frozen=True):
    """The facts about a source, the source to convert, and the findings of its scan if it is GeoJSON."""

    facts: Facts
    source: Source
    scan: Scan | None


async def inspect_source(
    engine: Engine, run: Run, source: Source, target: Format, directory: Path, *, request: ConversionRequest = UNASKED
) -> Inspection:
    """Determine what `source` contains; raises what `Engine.inspect` raises."""
    most = most_to_read(target, request)
    seeks_edges = is_projected(target, request, engine.catalogue)
    try:
        is_json = reading_of(source.format).json
        found = await scan_document(engine, run, source, seeks_edges=seeks_edges, copies=True) if is_json else None
    except Unreadable as unreadable:
        if unreadable.reason in MISREAD | UNFIT_NAMES:
            raise
        # The converter reads more than GeoJSON under this name, and may give its own reason for a rejection.
        try:
            return Inspection(await engine.inspect(run, source, directory, request, most), source, None)
        except Rejection as rejection:
            is_told = unreadable.reason in BETTER_TOLD and not isinstance(rejection, NoRoom)
            raise unreadable if is_told else rejection from None
    if found is None:
        try:
            return Inspection(await engine.inspect(run, source, directory, request, most), source, None)
        except Rejection:
            if reading_of(source.format).told_by:  # a description may have the same members but no features
                await require_features(source)
            raise
    fit = await normalized(source, found)
    facts = await run_for_columns(partial(found.facts, source.stem), [found.fields])
    # Only the converter can tell whether a system that is not in the catalogue exists.
    is_odd = found.crs_epsg is None or not engine.catalogue.has(found.crs_epsg)
    source_epsg = request.source_epsg or found.crs_epsg or WGS84
    output_epsg = writing_of(target).epsg or request.target_epsg
    in_degrees = engine.catalogue.is_geographic(source_epsg)
    is_mislabeled = found.exceeds_degrees and (is_odd or engine.catalogue.is_in_degrees(source_epsg))
    may_lack_grid = source_epsg != output_epsg and engine.catalogue.depends_on_place(source_epsg, output_epsg)
    may_leave_map = in_degrees and (found.near_edges or not engine.catalogue.is_geographic(found.crs_epsg or WGS84))
    is_changed = not writing_of(target).json and (
        found.has_rounded_up
        or found.empty_geometries
        or Flaw.HOLLOW in found.flaws
        or found.may_be_infinite
        or found.may_be_faulty
    )
    is_ambiguous = writing_of(target).rings_alone and found.has_many_rings
    must_ask = is_mislabeled or is_odd or may_leave_map or may_lack_grid or is_changed or is_ambiguous
    # The converter examines coordinates that cannot be degrees, or of which it matters where they lie.
    if must_ask or not can_go_direct(fit, target, facts):
        facts = await engine.inspect(run, fit, directory, request, most)
        facts = _with_counts(facts, found, keeps_empty=writing_of(target).json and can_go_direct(fit, target, facts))
    elif found.may_be_faulty:
        facts = _with_faults(facts, await engine.inspect(run, fit, directory, request, most))
    if is_odd:
        facts = _without_guessed_system(facts, found.crs_name)
    rounds = engine.capabilities.is_of(reading_of(source.format).rounds_long_negatives)
    told = reading_warnings(found, into_json=writing_of(target).json, rounds=rounds)
    return Inspection(msgspec.structs.replace(facts, warnings=(*facts.warnings, *told)), fit, found)


async def require_features(source: Source) -> None:
    """Refuse JSON that is neither GeoJSON nor has features, if it is of a kind that can be named.

    Raises:
        Rejection: it is.
    """
    await run_blocking(lambda: refuse_other_json(head_of(source.path)), inline=False)


def _with_counts(facts: Facts, found: Scan, *, keeps_empty: bool) -> Facts:
    """`facts` with the numbers of objects and arrays, of which the converter sees only arrays of one type as such.

    It takes the others for texts that are like them. Nor does it see all parts of geometries without any position,
    which the warnings about the scan report. JSON that is copied `keeps_empty` geometries.
    """
    counts = {field.name: {"nested": field.nested, "like_json": field.like_json} for field in found.fields}
    layers = tuple(
        msgspec.structs.replace(
            layer,
            flaws=layer.flaws_without(Flaw.HOLLOW),
            empty_geometries=0 if keeps_empty else layer.empty_geometries,
            fields=tuple(msgspec.structs.replace(field, **counts.get(field.name, {})) for field in layer.fields),
        )
        for layer in facts.layers
    )
    return msgspec.structs.replace(facts, layers=layers)


def _with_faults(facts: Facts, found: Facts) -> Facts:
    """`facts` with what the converter has `found` of faulty lines and rings, which JSON that is copied keeps."""
    layers = tuple(
        msgspec.structs.replace(
            layer, flaws={**layer.flaws, **{flaw: other.flaws[flaw] for flaw in _FAULTY & other.flaws.keys()}}
        )
        for layer, other in zip(facts.layers, found.layers, strict=True)
    )
    return msgspec.structs.replace(facts, layers=layers)


def _without_guessed_system(facts: Facts, name: str) -> Facts:
    """`facts` without WGS 84 as the system `name`: the driver assumes it, without a message, for unknown names."""
    layers = tuple(
        msgspec.structs.replace(layer, crs=Crs(name=name)) if layer.crs.epsg == WGS84 else layer
        for layer in facts.layers
    )
    return msgspec.structs.replace(facts, layers=layers)


def is_document(source: Source) -> bool:
    """Whether the source's format is GeoJSON, for which data loss is reported."""
    return reading_of(source.format).reader is Reader.DOCUMENT


async def scan_document(
    engine: Engine, run: Run, source: Source, *, seeks_edges: bool = False, copies: bool = False
) -> Scan:
    """Scan GeoJSON: in this process if it is small, otherwise in the sandbox, which writes its outcome beside it.

    With `seeks_edges`, the findings tell whether positions may be where maps of the world end. With `copies`, the same
    run writes the copy that `normalized` requires of a large document.

    Raises:
        Unreadable: the converter could not read it as GeoJSON.
        Rejection: it is JSON of another kind that has a name or in another encoding, or the scan exceeds the limits.
    """
    try:
        return await scan_file(engine, run, source.path, *(EDGES,) * seeks_edges, *(NORMALIZED_FILE,) * copies)
    except Unreadable as unreadable:
        if unreadable.reason in UNKNOWN_JSON:
            await require_features(source)
        if unreadable.reason is Reason.NOT_UTF8:
            await run_blocking(partial(require_utf8, source.path, source.format.title), inline=False)
        raise


async def scan_file(engine: Engine, run: Run, path: Path, *options: str) -> Scan:
    """Scan the GeoJSON at `path` as `scan_document` does, which finds out why one cannot be read.

    `options` are further arguments of the program for large documents.

    Raises:
        Unreadable: it is no GeoJSON.
        Rejection: the scan exceeds the limits.
    """
    document = read_light(path)
    if document is not None:
        seeking = partial(scan_bytes, document, seeks_edges=EDGES in options)
        found = await run_blocking(seeking, inline=is_quick(document))
    else:
        await _scan_in_sandbox(engine, run, path, *options)
        found = await run_blocking(partial(read_scan, path.parent / SCAN_FILE), inline=False)
    return found.keeping_texts()


async def normalized(source: Source, found: Scan) -> Source:
    """`source` in a form that the converter reads completely, as far as possible; a scan has copied large ones."""
    reading = reading_of(source.format)
    options = (
        *(reading.text_options if found.dates_are_texts else ()),
        *(reading.options if found.lists_are_texts else ()),
    )
    mode = mode_for(found)
    if mode is None:
        return msgspec.structs.replace(source, options=options)
    target = source.path.parent / NORMALIZED_FILE
    document = read_light(source.path)
    if document is not None:
        await run_blocking(partial(normalize, source.path, target, mode), inline=is_quick(document))
    part = Part({NORMALIZED_EXTENSION: target}, source.parts[0].layer)
    return msgspec.structs.replace(source, options=options, parts=(part,), prefix="")


async def _scan_in_sandbox(engine: Engine, run: Run, path: Path, *options: str) -> None:
    """Scan the file at `path` in the sandbox; the outcome is written next to it."""
    command = Command(
        argv=(engine.capabilities.python, "-m", scan_program.__name__, path.name, SCAN_FILE, *options),
        directory=path.parent,
        environment=python_environment(engine.capabilities),
        limits=engine.limits,
    )
    require_program_success(await run(command), Subject(input="GeoJSON"))
