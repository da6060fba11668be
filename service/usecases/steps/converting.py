"""The steps that need a converter: inspect the source, plan the output, convert, verify."""

from functools import partial
from pathlib import Path

import msgspec

from service.blocking import run_for_columns
from service.engine.convert import Engine
from service.engine.workspace import Run, share_done
from service.formats.facts import Facts
from service.formats.format import Format
from service.formats.plan import ConversionPlan, plan_conversion
from service.formats.registry import by_token
from service.formats.source import Source
from service.formats.straying import Astray
from service.jobs.records import Job
from service.jobs.spec import JobSpec
from service.usecases.inspect_source import Inspection, inspect_source
from service.usecases.verify_output import verify_output


class Bench(msgspec.Struct, frozen=True):
    """The tools of the converting steps; `run` starts a command in the job's converter."""

    engine: Engine
    run: Run

    def share(self) -> float | None:
        """Return which share of its current work the converter has done; None if that is unknown."""
        return share_done(self.run)


class Assigned(msgspec.Struct, frozen=True, kw_only=True):
    """A job that this host runs; its files are in `directory`."""

    spec: JobSpec
    job: Job
    directory: Path


class Started(Assigned, frozen=True, kw_only=True):
    """A job that has started; `source` is its input, and its outputs go to `directory`."""

    source: Source
    target: Format


class Inspected(Started, frozen=True, kw_only=True):
    """The contents of the source are known."""

    inspection: Inspection


class Planned(Inspected, frozen=True, kw_only=True):
    """The output is planned."""

    plan: ConversionPlan


class Converted(Planned, frozen=True, kw_only=True):
    """The output is written; `astray` are its features with coordinates that mean nothing."""

    astray: Astray


class Verified(Converted, frozen=True, kw_only=True):
    """The output was read back; `differences` lists what differs from the plan."""

    differences: tuple[str, ...]


def start(spec: JobSpec, directory: Path) -> Started:
    """Return the started job; its files are in `directory` on this host.

    Raises:
        LookupError: this version of the service does not know a format of the job.
    """
    source = spec.source.resolve(directory)
    return Started(spec=spec, job=spec.job, directory=directory, source=source, target=by_token(spec.target))


async def inspect(bench: Bench, started: Started) -> Inspected:
    """Determine what the source contains.

    Raises:
        Rejection: the source cannot be read, or reading it exceeds the limits.
    """
    inspection = await inspect_source(
        bench.engine, bench.run, started.source, started.target, started.directory, request=started.spec.request
    )
    before = msgspec.structs.asdict(started)
    return Inspected(**{**before, "job": _with(started.job, inspection.facts)}, inspection=inspection)


async def plan(bench: Bench, inspected: Inspected) -> Planned:
    """Decide what to write.

    Raises:
        Rejection: the target cannot hold the data, or the request names something that does not exist.
    """
    facts, source = inspected.inspection.facts, inspected.inspection.source
    work = partial(plan_conversion, source, inspected.target, facts, inspected.spec.request, bench.engine.catalogue)
    planned = await run_for_columns(work, [layer.fields for layer in facts.layers])
    before = msgspec.structs.asdict(inspected)
    if planned.converted.layers != facts.layers:
        before["job"] = _with(inspected.job, planned.converted)
    return Planned(**before, plan=planned)


async def convert(bench: Bench, planned: Planned) -> Converted:
    """Write the output.

    Raises:
        Rejection: the data cannot be written as planned, or writing it exceeds the limits.
    """
    astray = await bench.engine.convert(bench.run, planned.inspection.source, planned.plan, planned.directory)
    return Converted(**msgspec.structs.asdict(planned), astray=astray)


async def verify(bench: Bench, converted: Converted) -> Verified:
    """Read the output back.

    Raises:
        Rejection: the result is unusable, or reading it exceeds the limits.
    """
    source, plan, directory = converted.inspection.source, converted.plan, converted.directory
    differences = await verify_output(bench.engine, bench.run, source, plan, directory, astray=converted.astray)
    return Verified(**msgspec.structs.asdict(converted), differences=differences)


def _with(job: Job, facts: Facts) -> Job:
    return msgspec.structs.replace(job, feature_count=facts.feature_count, geometry_type=facts.geometry_type)
