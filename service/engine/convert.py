"""The engine: inspects files and converts them. Every untrusted byte is read in the sandbox."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import TracebackType

import msgspec

from sandbox.command import Limits
from service.blocking import INLINE_BYTES, run_blocking, run_for_columns
from service.engine.arguments import Origin, dataset_name, origin_of
from service.engine.capabilities import Capabilities
from service.engine.diagnostics import EngineDefect, Subject, UnreachableSystem, require_success
from service.engine.editing import JAILED as EDITING_JAILED
from service.engine.editing import edit_work_file
from service.engine.files import holds_little
from service.engine.jailed import CALLER, postprocessing
from service.engine.jailed import facts as facts_program
from service.engine.jailed import readback as readback_program
from service.engine.jailed import zones as zones_program
from service.engine.jailed.readback import READERS
from service.engine.jailed.zones import count_odd_times
from service.engine.output import Output, collect
from service.engine.preview import JAILED as PREVIEW_JAILED
from service.engine.preview import write_preview
from service.engine.reading.gml import heights_warnings, radii_warnings, renamed_warnings
from service.engine.reading.nans import with_nans
from service.engine.reading.readers import JAILED, read_into_work_file
from service.engine.reading.work_file import INTO_WORK_FILE, WorkFile
from service.engine.recorded_system import recorded_system
from service.engine.recount import count_unreachable
from service.engine.rereading import finds_all, has_tally, questions_after, reread, tally
from service.engine.session import Answer, NotOpened, Session, SessionOver, Traced, untraced
from service.engine.session_edits import drivers_for, environment_for, needs_work_file, save, shape, tidy
from service.engine.session_loading import begin
from service.engine.straying import ask_strays, count_strays
from service.engine.workbooks import JAILED as WORKBOOKS_JAILED
from service.engine.workspace import FOLDER, INPUT, VERIFIED_FILE, WORK_FILE, Run, Workplace, staged_names
from service.engine.writing import write
from service.formats.crs import WGS84, catalogue_of
from service.formats.datasets import Dataset
from service.formats.facts import (
    MAX_LAYERS,
    Count,
    Crs,
    Facts,
    Field,
    FieldType,
    Flaw,
    FormerType,
    Layer,
    require_short_names,
)
from service.formats.format import ANY_FLAT, OF_LAYERS, OF_RELEASES, Format, Reading, Reread, reading_of
from service.formats.names import listed, quotes, unique
from service.formats.plan import ConversionPlan
from service.formats.request import ConversionRequest
from service.formats.source import Source
from service.formats.straying import Astray, that_may_stray
from service.formats.verify import ReadBack, Recorded
from service.geojson.fields import EXACT_IN_REAL

__all__ = ["Engine", "OddTimes", "Output"]

UNASKED = ConversionRequest()
OPEN_OPTION = "-oo"
AS_WRITTEN = "NATIVE_DATA=YES"
"""With this option, which ogr2ogr always adds, features of JSON keep what their columns do not hold."""
JAILED_PROGRAMS = (
    CALLER,
    facts_program.__name__,
    readback_program.__name__,
    zones_program.__name__,
    *JAILED,
    *EDITING_JAILED,
    *WORKBOOKS_JAILED,
    postprocessing.__name__,
    *PREVIEW_JAILED,
)
"""The modules that run in the sandbox, for a launcher that keeps them loaded."""


class Engine:
    """Converts files with the converter of this host."""

    def __init__(self, capabilities: Capabilities, limits: Limits | None = None, *, has_sessions: bool = False) -> None:
        self.has_sessions = has_sessions
        """Whether a run can be held open: if ogr2ogr starts with the fork server's library preloaded."""
        self.capabilities = capabilities
        self.catalogue = catalogue_of(capabilities.proj_database)
        self.limits = limits or Limits()

    async def inspect(
        self,
        run: Run,
        source: Source,
        directory: Path,
        request: ConversionRequest = UNASKED,
        most_filled: int = MAX_LAYERS + 1,
    ) -> Facts:
        """Read `source` into the work file and return the facts about it.

        Args:
            run: starts a command in the sandbox.
            source: the detected upload.
            directory: the job's own directory.
            request: the client's request; it may name the columns that hold the geometry of a table.
            most_filled: with so many layers that have features, the facts need not be complete.

        Raises:
            Rejection: the file cannot be read, or reading it exceeds the limits.
            EngineDefect: the converter could not be run.
        """
        place = self._place(run, directory, source, Subject(input=source.format.title))
        place.most_filled = most_filled
        await place.clear()
        found = await read_into_work_file(place, source, request)
        facts = found.facts
        if facts is None:
            known = _tidying(place, reading_of(source.format), found)
            facts = await place.call(facts_program.__name__, Facts, WORK_FILE, known)
            facts = await with_nans(place, source, found, facts)
        system = found.system if request.source_epsg is None else ""
        heights = heights_warnings(system, facts.layers, self.catalogue)
        radii = await radii_warnings(place, source, facts.layers, self.catalogue)
        renamed = await renamed_warnings(place, source, facts.layers)
        found = msgspec.structs.replace(found, warnings=(*found.warnings, *heights, *radii, *renamed))
        named = partial(_named, facts, source, found, place, request.layer)
        return await run_for_columns(named, [layer.fields for layer in facts.layers])

    async def convert(self, run: Run, source: Source, plan: ConversionPlan, directory: Path) -> Astray:
        """Write the output of `plan`, which `collect` then packs; return what strays in it.

        Raises:
            Rejection: the data cannot be written as planned, or writing it exceeds the limits.
            EngineDefect: the converter could not be run.
        """
        subject = Subject(
            input=source.format.title,
            target=plan.target.title,
            source_epsg=plan.source_epsg,
            target_epsg=plan.output_epsg,
        )
        place = self._place(run, directory, source, subject)
        if not place.is_made:
            await place.clear()
        origin = origin_of(source, plan)
        held = await _held(place, plan, source, origin)
        if held is None and not plan.direct:
            await edit_work_file(place, plan)
        doubtful = that_may_stray(plan, self.catalogue)
        try:
            if held is not None and place.session is not None:
                try:
                    return await self._convert_held(place, place.session, plan, held, doubtful)
                except NotOpened:
                    await _let_go(place, plan)
            await write(place, plan, origin)
        except UnreachableSystem as failure:
            await _let_go(place, plan)
            raise await count_unreachable(place, plan, origin, failure) from None
        place = self._place(run, directory, source, Subject(input=source.format.title))
        if plan.direct and place.session is not None and doubtful:
            with suppress(SessionOver, NotOpened):
                return await self._seen_in_upload(place, place.session, plan, source, doubtful)
        return await count_strays(place, plan, origin, doubtful, self.catalogue)

    async def _seen_in_upload(
        self, place: Workplace, session: Session, plan: ConversionPlan, source: Source, doubtful: Sequence[Dataset]
    ) -> Astray:
        """What strays in a result that a run of its own has written: a session sees more than `count_strays`.

        Raises:
            NotOpened: the session cannot open the upload.
            SessionOver: it ended.
        """
        origin = origin_of(source, plan)
        _begin_with_upload(place, session, source, origin)
        try:
            return await ask_strays(place, plan, origin, doubtful, self.catalogue)
        finally:
            session.forget()
            await session.abandon()

    async def _convert_held(
        self, place: Workplace, session: Session, plan: ConversionPlan, held: Origin, doubtful: Sequence[Dataset]
    ) -> Astray:
        """Do so with what the open run of the session holds, or opens first.

        Raises:
            NotOpened: it could not.
        """
        astray = await ask_strays(place, plan, held, doubtful, self.catalogue)
        session.foreseen = questions_after(plan, self._rereading(place, plan), place.host)
        await write(place, plan, held)
        session.forget()
        return astray

    async def read_back(self, run: Run, source: Source, plan: ConversionPlan, directory: Path) -> ReadBack | None:
        """Count in the sandbox what `convert` wrote; None if this host cannot read such results.

        Results of JSON are counted by the run that wrote them alone; None if that is over.
        """
        place = self._place(run, directory, source, Subject(input=plan.target.title))
        if has_tally(plan):
            tallied = await tally(place, plan)
            if tallied is not None or plan.writing.json:
                return tallied
        how = self._rereading(place, plan)
        if how is not None:
            found = await reread(place, plan, how)
            if not plan.writing.records_compound and self.catalogue.is_compound(plan.output_epsg or 0):
                return msgspec.structs.replace(found, recorded=Recorded(is_known=False))
            if not how.doubts_system or plan.output_epsg == WGS84:
                return found
            return msgspec.structs.replace(found, recorded=await recorded_system(place, plan, how, self.catalogue))
        if plan.writing.read_back in READERS:
            names = json.dumps({dataset.name: dataset_name(plan, dataset) for dataset in plan.datasets})
            return await place.call(readback_program.__name__, ReadBack, plan.writing.read_back, names)
        # otherwise the program that wrote the result has read it back, if it could
        return await place.read_json(VERIFIED_FILE, ReadBack) if await place.has(VERIFIED_FILE) else None

    def _rereading(self, place: Workplace, plan: ConversionPlan) -> Reread | None:
        """How a driver reads the result: no program does, or the run that wrote it is still open."""
        how = plan.writing.reread
        if how is None or not any(map(place.host.can_read, how.drivers)) or not finds_all(plan, how):
            return None
        is_open = place.session is not None and place.session.is_open
        return how if is_open or plan.writing.read_back not in READERS else None

    async def count_odd_times(self, run: Run, source: Source, plan: ConversionPlan, directory: Path) -> int:
        """How many times the upload holds in zones that its driver cannot represent; 0 if the plan holds no times.

        Raises:
            Rejection: counting them exceeds the limits.
        """
        types = {field.type for dataset in plan.datasets for field in dataset.layer.fields if field.filled}
        if FieldType.DATETIME not in types or not reading_of(source.format).zoned_texts:
            return 0
        files = [part.path for part in source.parts]
        if source.size_bytes <= INLINE_BYTES:
            return count_odd_times(files)
        place = self._place(run, directory, source, Subject(input=source.format.title))
        if place.session is not None and place.session.is_open:
            return (await place.session.ask(OddTimes, "zones", *staged_names(source))).count
        return await place.call(zones_program.__name__, int, *staged_names(source))

    async def preview(self, run: Run, source: Source, directory: Path, epsg: int | None) -> Path:
        """Write a preview of `source` as GeoJSON in longitude and latitude, below `directory`; return its path.

        `epsg` is the system of layers that record none; if it is None, their coordinates are left out.

        Raises:
            Rejection: the file cannot be read, or reading it exceeds the limits.
            EngineDefect: the converter could not be run.
        """
        facts = await self.inspect(run, source, directory)
        place = self._place(run, directory, source, Subject(input=source.format.title))
        return place.path / await write_preview(place, facts, epsg)

    async def collect(self, plan: ConversionPlan, directory: Path) -> Output:
        """Check and pack what `convert` wrote into the file to deliver, below `directory`. Needs no converter.

        Raises:
            Rejection: a planned file is missing, truncated or not a regular file.
            EngineDefect: the result does not declare its coordinate system.
        """
        place = f"{directory}/{FOLDER}"
        is_little = holds_little(place)
        return await run_blocking(partial(collect, place, plan, is_little=is_little), inline=is_little)

    def session(self, run: Run, target: Format, traced: Traced = untraced) -> AbstractAsyncContextManager[Run]:
        """A `Run` for one conversion into `target` that may hold one converter open over several steps.

        `traced` is called with each question that it asks that one, and entered until the answer.

        Raises:
            Rejection: the last converter exceeded its limits.
            EngineDefect: it failed.
        """
        if not self.has_sessions:
            return nullcontext(run)
        return _Held(Session(run, drivers_for(target), environment_for(target), traced), target)

    def _place(self, run: Run, directory: Path, source: Source, subject: Subject) -> Workplace:
        return Workplace(run, self.capabilities, self.limits, directory, source=source, subject=subject)


class OddTimes(Answer, frozen=True):
    """How many times files hold in zones that their driver cannot represent."""

    count: Count


class _Held(AbstractAsyncContextManager[Run]):
    """A session whose end without an answer is a rejection or a defect."""

    def __init__(self, session: Session, target: Format) -> None:
        self._session = session
        self._target = target

    async def __aenter__(self) -> Run:
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._session.__aexit__(kind, error, trace)
            if isinstance(error, SessionOver):
                raise error
        except SessionOver as over:
            require_success(over.verdict, Subject(input=self._target.title))
            raise EngineDefect("the run that was held open did not answer") from None


def _tidying(place: Workplace, reading: Reading, found: WorkFile) -> str:
    """What is known about the columns that the driver reports, for the program in the sandbox."""
    known = {
        "most_filled": place.most_filled,
        "noise": {name: list(usual) for name, usual in reading.noise_columns.items()},
        "prefix": reading.column_prefix,
        "guesses_types": reading.guesses_types,
        "numbers": sorted(reading.numbers),
        "absent_measures": reading.absent_measures,
        "logical": dict(found.logical),
        "names": dict(found.names),
        "cells": dict(found.cells),
        "has_other_texts": found.has_other_texts or reading.unchecked_texts,
        "clock_times": sorted(
            place.every_clock_time | {name for name, was in found.was.items() if was is FormerType.TIME}
        ),
    }
    return json.dumps(known)


def _named(facts: Facts, source: Source, found: WorkFile, place: Workplace, wanted: str | None) -> Facts:
    """`facts` with the layers named as in the upload, each of them differently; `Rejection` if names are too long.

    `wanted` is the only layer to convert; None for all.
    """
    for layer in facts.layers:
        require_short_names(field.name for field in layer.fields)
    derived = reading_of(source.format).derived_layers
    names = [_layer_name(layer, source, found) for layer in facts.layers]
    if len({name.casefold() for name in names}) < len(names):
        names = list(unique(names))
    layers = tuple(
        msgspec.structs.replace(
            layer,
            name=name,
            is_derived=layer.name in derived,
            flaws=layer.flaws_without(Flaw.HOLLOW) if found.tells_parts else layer.flaws,
            fields=_with_former_types(
                layer.fields,
                {
                    **dict.fromkeys(place.clock_times.get(layer.name, place.every_clock_time), FormerType.TIME),
                    **found.was,
                },
            ),
            crs=layer.crs if layer.crs.known and not found.assumes_system else Crs(name=found.system),
        )
        for layer, name in zip(facts.layers, names, strict=True)
    )
    columns = {named for layer in layers for field in layer.fields for named in (field.name, f"*{field.type}")}
    columns |= {ANY_FLAT for layer in layers if layer.flat_geometries}
    conditions = source.warnings_without.items()
    unread = (warning for warning, condition in conditions if _is_met(condition, columns, place.host, wanted))
    warnings = (
        *source.warnings,
        *unread,
        *found.warnings,
        *_rounded(layers, found.rounded),
        *_mixed(layers, found.truths),
    )
    return msgspec.structs.replace(facts, layers=layers, warnings=warnings, is_unplaced=found.is_unplaced)


def _with_former_types(fields: tuple[Field, ...], was: Mapping[str, FormerType]) -> tuple[Field, ...]:
    return tuple(_with_former_type(field, was) for field in fields) if was else fields


def _with_former_type(field: Field, was: Mapping[str, FormerType]) -> Field:
    """`field` with what is told of the type that it had, if reading has changed it to what it is."""
    former = was.get(field.name)
    is_changed = field.type is (FieldType.REAL if former is FormerType.DECIMAL else FieldType.TEXT)
    if former is None or not is_changed:
        return field
    is_list = former is FormerType.LIST
    told = {"nested": field.filled or 0, "like_json": 0} if is_list else {"was": former}
    return msgspec.structs.replace(field, **told)


def _rounded(layers: Iterable[Layer], sentence: str) -> Iterator[str]:
    """What is told of columns of floating-point numbers with some beyond 53 bits, if `sentence` is not empty."""
    fields = (field for layer in layers for field in layer.fields if field.type is FieldType.REAL)
    large = [field.name for field in fields if field.total is None or field.total > EXACT_IN_REAL]
    if sentence and large:
        yield sentence.format(columns=listed(quotes(large)))


def _mixed(layers: Iterable[Layer], truths: int) -> Iterator[str]:
    """What is told if only some of the cells with true and false, `truths` in all, are in columns of Booleans."""
    columns = [field.filled for layer in layers for field in layer.fields if field.type is FieldType.BOOLEAN]
    others = truths - sum(count or 0 for count in columns)
    if others > 0 and None not in columns:
        yield f"True and false in columns that also hold other values ({others:,}) became 1 and 0."


def _is_met(condition: str, columns: Collection[str], host: Capabilities, wanted: str | None) -> bool:
    """Whether something is left out of what is converted, as `LeftOut.condition` says."""
    if condition.startswith(OF_LAYERS):
        return wanted is None or wanted.casefold() in condition.removeprefix(OF_LAYERS).split()
    if condition.startswith(OF_RELEASES):
        return host.is_of(condition.removeprefix(OF_RELEASES))
    return condition not in columns


def _layer_name(layer: Layer, source: Source, found: WorkFile) -> str:
    """The layer's name, or the upload's if the driver derived it from our name for the file."""
    name = found.names.get(layer.table, layer.name)
    ours = {f"{INPUT}{number}": part.layer for number, part in enumerate(source.parts)}
    return ours.get(name, name or source.stem)


async def _held(place: Workplace, plan: ConversionPlan, source: Source, origin: Origin) -> Origin | None:
    """What the open run of a session holds, made ready for `plan`; None if there is none, or the plan needs more."""
    session = place.session
    if session is None:
        return None
    if plan.direct:
        return await _opened(place, session, plan, source, origin)
    if not session.is_open:
        return None
    if needs_work_file(plan):
        await tidy(session)
        await save(place, session, INTO_WORK_FILE)
        return None
    await shape(session, plan)
    return msgspec.structs.replace(origin, is_shaped=True)


async def _opened(
    place: Workplace, session: Session, plan: ConversionPlan, source: Source, origin: Origin
) -> Origin | None:
    """Have a session open the upload, whatever its run has held.

    An upload without features needs none: some writers would ask it nothing.
    """
    await session.abandon()
    is_empty = not any(dataset.features for dataset in plan.datasets)
    if is_empty or needs_work_file(plan):
        return None
    _begin_with_upload(place, session, source, origin, *((AS_WRITTEN,) if plan.writing.json else ()))
    place.held_name = origin.name
    return msgspec.structs.replace(origin, options=())


def _begin_with_upload(place: Workplace, session: Session, source: Source, origin: Origin, *options: str) -> None:
    begin(place, session, origin.drivers, reading_of(source.format))
    options += tuple(option for option in origin.options if option != OPEN_OPTION)
    session.open_first(origin.name, origin.drivers, options)


async def _let_go(place: Workplace, plan: ConversionPlan) -> None:
    """Save what is held to the work file for later steps, and end the run."""
    session = place.session
    if session is not None and session.is_open:
        if plan.direct:
            await session.abandon()
        else:
            await save(place, session, INTO_WORK_FILE)
