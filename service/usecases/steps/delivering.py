"""The steps after the last command: pack the output, make its key durable, store it, charge and publish."""

from collections.abc import Callable

import anyio
import msgspec
import structlog

from service.dataloss.rules import report
from service.dataloss.tables import findings_of
from service.dataloss.warnings import extra_warnings
from service.engine.convert import Output
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.metering.ledger import Settled, Settlement
from service.storage.names import download_name
from service.storage.port import ObjectKey
from service.telemetry import events, metrics
from service.telemetry.stage import stage
from service.telemetry.tracing import span
from service.usecases.ending import JobParts, end_on_record, retry_while_unavailable
from service.usecases.steps.converting import Verified

_log = structlog.get_logger()


class ForgottenError(Exception):
    """A crash of the database has undone the job's admission, or the claim of this attempt."""


class Outbound(msgspec.Struct, frozen=True):
    """The tools of the delivering steps; `elapsed_ms` returns how long the job has been converting."""

    parts: JobParts
    elapsed_ms: Callable[[], int]


class Packed(Verified, frozen=True, kw_only=True):
    """The output is one file, and its part of the response is known."""

    output: Output
    details: Details
    download_name: str
    """The output's file name for downloads."""


class Stored(Packed, frozen=True, kw_only=True):
    """The output is in the store."""


class Ended(Stored, frozen=True, kw_only=True):
    """The job has ended as `job` says, by this attempt or another."""


async def pack(outbound: Outbound, verified: Verified) -> Packed:
    """Pack what was written into one file.

    Raises:
        Rejection: a planned file is missing, truncated or not a regular file.
    """
    with span("pack"):
        output = await outbound.parts.engine.collect(verified.plan, verified.directory)
    outbound.parts.work_area.note_result(verified.directory, verified.spec.account_id, output.size_bytes)
    return Packed(
        **msgspec.structs.asdict(verified),
        output=output,
        details=describe(output, verified),
        download_name=download_name(verified.job.original_file_name, output.extension),
    )


async def secure(outbound: Outbound, packed: Packed) -> Packed:
    """Make sure that the record of the output's key survives any crash from now on.

    Raises:
        ForgottenError: a crash of the database has undone the admission, or the claim of this attempt.
    """
    job, ledger = packed.job, outbound.parts.ledger
    with span("secure"):
        is_durable = await retry_while_unavailable(lambda: ledger.is_durable(job.id, job.attempt))
    if not is_durable:
        raise ForgottenError
    return packed


async def store(outbound: Outbound, packed: Packed) -> Stored:
    """Put the output into the store.

    Raises:
        StorageUnavailable: the store did not confirm the output; it may still contain it.
    """
    key, output = ObjectKey(packed.spec.object_key), packed.output
    with stage("store"):
        await outbound.parts.own_store.put(
            key, output.file, media_type=output.media_type, download_name=packed.download_name
        )
    return Stored(**msgspec.structs.asdict(packed))


async def settle(outbound: Outbound, stored: Stored) -> Ended:
    """Charge and publish the job. If another attempt has ended it meanwhile, accept that end.

    Raises:
        ForgottenError: a crash of the database has undone the admission.
        Overloaded: another attempt holds the job and has not ended it.
    """
    settlement = _settlement(stored, outbound.elapsed_ms())
    with anyio.CancelScope(shield=True), stage("settle"):
        settled = await retry_while_unavailable(lambda: outbound.parts.ledger.settle(settlement))
        if settled is None:
            ended = await end_on_record(outbound.parts, stored.spec, may_have_stored=True)
            if ended is None:
                raise ForgottenError
        else:
            ended = _completed(stored, settlement, settled)
        if ended.status is not Status.FAILED and ended.attempt == settlement.attempt:
            _tell(stored, ended)  # also if the answer to the statement that has settled it was lost
    return Ended(**{**msgspec.structs.asdict(stored), "job": ended})


def describe(output: Output, verified: Verified) -> Details:
    """The details in the response to a success; a Shapefile comes with a data-loss report (interface 2.4)."""
    warnings = (*output.warnings, *verified.differences)
    if not verified.plan.writing.loss_report:
        return Details(warnings=warnings, output_epsg=output.output_epsg)
    scan = verified.inspection.scan
    found = (scan,) if scan is not None else findings_of(verified.plan.converted)
    return Details(
        warnings=(*warnings, *extra_warnings(*found)),
        output_epsg=output.output_epsg,
        truncation_report=msgspec.to_builtins(report(*found)),
    )


def _settlement(stored: Stored, elapsed_ms: int) -> Settlement:
    return Settlement(
        job_id=stored.job.id,
        attempt=stored.job.attempt,
        retention_hours=stored.spec.retention_hours,
        processing_time_ms=elapsed_ms,
        feature_count=stored.job.feature_count or 0,
        geometry_type=stored.job.geometry_type or "None",
        output_size_bytes=stored.output.size_bytes,
        download_name=stored.download_name,
        media_type=stored.output.media_type,
        details=stored.details.encode(),
    )


def _completed(stored: Stored, settlement: Settlement, settled: Settled) -> Job:
    balance = settled.balance
    details = msgspec.structs.replace(
        stored.details,
        remaining_conversions=balance.remaining_conversions,
        remaining_bytes=balance.remaining_bytes,
        wallet_cents=balance.wallet_cents,
    )
    return msgspec.structs.replace(
        stored.job,
        status=Status.COMPLETED,
        completed_at=settled.completed_at,
        expires_at=settled.expires_at,
        processing_time_ms=settlement.processing_time_ms,
        output_size_bytes=settlement.output_size_bytes,
        object_key=stored.spec.object_key,
        download_name=settlement.download_name,
        media_type=settlement.media_type,
        details=details,
    )


def _tell(stored: Stored, ended: Job) -> None:
    """Record a success in metrics and log."""
    milliseconds, output_bytes = ended.processing_time_ms or 0, stored.output.size_bytes
    metrics.labeled(metrics.JOBS_ENDED, "completed").inc()
    of_pair = metrics.labeled(metrics.CONVERSION_SECONDS, stored.source.format.token, stored.target.token)
    of_pair.observe(milliseconds / 1000)
    metrics.INPUT_BYTES.inc(ended.input_size_bytes)
    metrics.OUTPUT_BYTES.inc(output_bytes)
    _log.info(
        events.JOB_COMPLETED,
        job_id=ended.id,
        input=ended.input_format,
        output=ended.output_format,
        input_bytes=ended.input_size_bytes,
        output_bytes=output_bytes,
        milliseconds=milliseconds,
    )
