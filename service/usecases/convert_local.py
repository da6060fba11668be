"""Converts a file of this machine without a server: the steps of a job, without admission, storage and charge."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import msgspec

from sandbox.pool import Pool
from service.clock import utc_now
from service.engine.convert import Engine
from service.formats.offer import Offer
from service.formats.request import ConversionRequest
from service.formats.source import Source
from service.formats.target import choose_target
from service.ids import AccountId, JobId, uuid7
from service.intake.form import Upload
from service.intake.workspace import WorkArea
from service.jobs.lifecycle import Situation, Status
from service.jobs.records import Details, Job
from service.jobs.spec import JobSpec, source_spec
from service.usecases.converter import RunCrashed, converter
from service.usecases.detect_format import detect_format
from service.usecases.pipeline import CONVERT, Progress
from service.usecases.steps.converting import Bench, Verified, start
from service.usecases.steps.delivering import describe

_NOBODY = AccountId(UUID(int=0))


class LocalParts(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversion without a server needs."""

    engine: Engine
    pool: Pool
    work_area: WorkArea
    offer: Offer


class LocalResult(msgspec.Struct, frozen=True, kw_only=True):
    """A converted file: its output in the work area, which is removed with it, and what there is to say about it."""

    path: Path
    extension: str
    job: Job


Watch = Callable[[Callable[[], Situation]], None]
"""Receives, for each attempt, a function that tells what happens to the conversion."""


async def convert_local(parts: LocalParts, upload: Upload, request: ConversionRequest, watch: Watch) -> LocalResult:
    """Convert an upload in the work area; `watch` hears of each attempt.

    Raises:
        Rejection: the file cannot be converted.
    """
    source = await detect_format(upload, parts.engine.limits, parts.work_area.space)
    parts.offer.require_readable(source.format)
    target = choose_target(source.format, request.output, parts.offer.unwritable())
    spec = _spec(source, target.token, upload, request)
    verified = await _convert(parts, spec, upload.directory, watch)
    output = await parts.engine.collect(verified.plan, verified.directory)
    details: Details = describe(output, verified)
    job = msgspec.structs.replace(verified.job, details=details, output_size_bytes=output.size_bytes)
    return LocalResult(path=output.path, extension=output.extension, job=job)


async def _convert(parts: LocalParts, spec: JobSpec, directory: Path, watch: Watch) -> Verified:
    """Run the steps that need a converter; once more from the start if a run crashes."""
    [ticket] = parts.pool.queue.enqueue(str(_NOBODY))
    begun = start(spec, directory)
    with converter(parts.pool, ticket) as run:
        while True:
            try:
                async with parts.engine.session(run, begun.target) as session:
                    progress, bench = Progress(begun), Bench(parts.engine, session)
                    progress.share = bench.share
                    watch(progress.situation)
                    verified: Verified = await progress.run(CONVERT, bench)
            except RunCrashed:
                begun = msgspec.structs.replace(begun, directory=parts.work_area.new_directory())
            else:
                return verified


def _spec(source: Source, target: str, upload: Upload, request: ConversionRequest) -> JobSpec:
    now = utc_now()
    job = Job(
        id=JobId(uuid7(now)),
        status=Status.PROCESSING,
        original_file_name=upload.untrusted_name,
        input_format=source.format.token,
        output_format=target,
        input_size_bytes=upload.size_bytes,
        created_at=now,
    )
    return JobSpec(
        job=job,
        account_id=_NOBODY,
        upload=upload.path.name,
        source=source_spec(source, upload.directory),
        target=target,
        request=request,
        retention_hours=0,
        object_key="",
    )
