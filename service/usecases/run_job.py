"""Everything after the seam: inspect, plan, convert, store, settle. The job ends Completed or Failed exactly once.

Nobody but this module catches a `Rejection` here. Whatever happens, cancellation included, the job is settled or
released under a shield, its directory is removed, and its place goes back to the pool.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import anyio
import msgspec
import structlog

from sandbox.command import Command
from sandbox.pool import Pool, QueueTicket
from sandbox.verdict import Ending, Verdict
from service.dataloss.rules import report
from service.dataloss.tables import findings_of
from service.dataloss.warnings import extra_warnings
from service.engine.convert import Engine, Output
from service.engine.workspace import Run
from service.errors import JobNotFound, Overloaded, Rejection, RetryableFault, StorageUnavailable
from service.formats.facts import Facts
from service.formats.plan import Plan, plan_conversion
from service.intake.workspace import WorkArea
from service.jobs.dispatch import RETRY_AFTER_SECONDS, JobSpec
from service.jobs.lifecycle import ENDED, Status
from service.jobs.records import Details, Job
from service.jobs.register import JobRegister
from service.metering.ledger import Ledger, Release, Settled, Settlement
from service.storage.names import download_name
from service.storage.observed import observed
from service.storage.port import ObjectKey, Storage
from service.telemetry import events, metrics
from service.telemetry.stage import stage
from service.usecases.accept_upload import details_of
from service.usecases.converter import RunCrashed, converter
from service.usecases.inspect_source import Inspection, inspect_source
from service.usecases.verify_output import verify_output

_log = structlog.get_logger()
_T = TypeVar("_T")

Outcome = Literal["rejected", "storage", "stopped", "forgotten", "defect"]
"""Why a job failed, as operators count it."""

DATABASE_RETRY_SECONDS = 60.0
"""How long the end of a job waits for a database that is away; after that, recovery ends the job."""

MEMORY_BYTES = 64 << 20
"""How much the files of a job may take in memory; beyond it the job is begun anew on disk."""

_INTERRUPTIONS: frozenset[Outcome] = frozenset({"stopped", "forgotten"})
"""Failures that say nothing of the file."""

STOPPED = "The service was stopped before the conversion had ended. Nothing was counted; send the file again."
FORGOTTEN = "The service's database was interrupted during the conversion. Nothing was counted; send the file again."
DEFECT = "The conversion failed because of a fault of the service. Nothing was counted; the fault was recorded."


class _ForgottenError(Exception):
    """A crash of the database has undone the job's admission."""


class _OutgrownMemoryError(Exception):
    """The files of a job take more room than is given to them in memory."""


class JobParts(msgspec.Struct, frozen=True, kw_only=True):
    """What running a job needs."""

    ledger: Ledger
    jobs: JobRegister
    engine: Engine
    pool: Pool
    storage: Storage
    work_area: WorkArea


async def run_job(parts: JobParts, ticket: JobSpec, place: QueueTicket) -> Job:
    """Run an admitted job to its end and return it ended."""
    run = _Run(parts, ticket)
    output: Output | None = None
    try:
        output = await run.collect(await run.convert(place))
        await run.store(output)
        await run.settle(output)
    except Rejection as rejection:
        await run.fail("rejected", rejection.message, details_of(rejection))
    except StorageUnavailable as unavailable:
        _log.warning(events.STORAGE_FAILED, job_id=ticket.job.id, fault=unavailable.fault, detail=unavailable.detail)
        await run.fail("storage", unavailable.message)
    except anyio.get_cancelled_exc_class():
        await run.fail("stopped", STOPPED)
        raise
    except _ForgottenError:
        await run.fail("forgotten", FORGOTTEN)
    except RetryableFault:
        raise  # the database stayed away: what it believes of the job is unknown, so recovery ends it
    except Exception:  # noqa: BLE001 -- a defect of any kind fails its own job
        _log.exception(events.JOB_DEFECT, job_id=ticket.job.id)
        await run.fail("defect", DEFECT)
    finally:
        await run.clean_up(inline=output is not None and output.is_little)
    return run.job


class _Converted(msgspec.Struct, frozen=True):
    """What was found in a file, and what was written of it by which plan."""

    look: Inspection
    plan: Plan
    differences: tuple[str, ...]
    """What reading the result back told."""


class _Run:
    """One job while it runs: its record, which grows by being replaced."""

    def __init__(self, parts: JobParts, ticket: JobSpec) -> None:
        self.job = ticket.job
        self._parts = parts
        self._ticket = ticket
        self._since = anyio.current_time()
        self._key = ObjectKey(ticket.object_key)
        self._may_be_stored = False
        self._directories = [ticket.directory]
        self._details = Details()

    async def convert(self, place: QueueTicket) -> _Converted:
        """Inspect, plan and convert, holding a converter from the first command to the last."""
        formats = {"input": self._ticket.source.format.token, "output": self._ticket.target.token}
        with ExitStack() as stages:

            def begin() -> None:
                self._since = anyio.current_time()
                stages.enter_context(stage("convert", **formats))
                stages.callback(self._parts.jobs.end, self.job.id)
                self._parts.jobs.begin(self.job.id)

            async with converter(self._parts.pool, place, begin) as run:
                done = await self._begin_until_done(run)
        return done

    async def collect(self, done: _Converted) -> Output:
        """Pack what was written."""
        output = await self._parts.engine.collect(done.plan, self._directory)
        self._details = _details(output, done)
        return output

    async def store(self, output: Output) -> None:
        """Put the output where links lead to it, once its key is sure to be known whatever crashes."""
        if not await _retry_while_unavailable(lambda: self._parts.ledger.is_durable(self.job.id)):
            raise _ForgottenError
        self._may_be_stored = True
        with stage("store"), observed("put"):
            await self._parts.storage.put(
                self._key, output.path, media_type=output.media_type, download_name=self._download_name(output)
            )

    async def clean_up(self, *, inline: bool) -> None:
        """Remove all files of the job; `inline` if they are known to be few."""
        for directory in self._directories:
            await self._parts.work_area.remove(directory, inline=inline)

    async def settle(self, output: Output) -> None:
        """Charge and publish the job. If somebody else has ended it meanwhile, take that end as it is.

        Raises:
            Overloaded: another attempt has the job, and has not ended.
        """
        settlement = self._settlement(output)
        with anyio.CancelScope(shield=True), stage("settle"):
            settled = await _retry_while_unavailable(lambda: self._parts.ledger.settle(settlement))
            if settled is not None:
                self._complete(settlement, settled)
            elif not await self._yield_to_record():
                raise _ForgottenError

    async def fail(self, outcome: Outcome, message: str, details: Details | None = None) -> None:
        """Release the job; nothing is charged, nothing is kept, and nobody is told before its record says so.

        Raises:
            Overloaded: another attempt has the job, and has not ended.
        """
        failed = msgspec.structs.replace(
            self.job,
            status=Status.FAILED,
            error_message=message,
            details=details or Details(),
            processing_time_ms=self._elapsed_ms(),
        )
        with anyio.CancelScope(shield=True):
            if not await self._record_failure(failed, interrupted=outcome in _INTERRUPTIONS):
                return
        formats = {"input": failed.input_format, "output": failed.output_format}
        metrics.JOBS_ENDED.labels(outcome).inc()
        _log.info(events.JOB_FAILED, job_id=failed.id, **formats, reason=message)

    async def _begin_until_done(self, run: Run) -> _Converted:
        """Convert; begin anew in a fresh directory on disk, where memory is too small or a run has crashed."""
        while True:
            try:
                return await self._convert(self._in_memory(run) if self._is_in_memory else run)
            except (_OutgrownMemoryError, RunCrashed):
                self._directories.append(self._parts.work_area.new_directory())

    async def _record_failure(self, failed: Job, *, interrupted: bool) -> bool:
        """Let the database say that the job has failed; return False if it says otherwise, which is the truth then."""
        release = Release(
            job_id=failed.id,
            attempt=failed.attempt,
            error_message=failed.error_message or "",
            details=failed.details.encode(),
            feature_count=failed.feature_count,
            geometry_type=failed.geometry_type,
            processing_time_ms=failed.processing_time_ms,
            object_key=self._key if self._may_be_stored else None,  # the sweep makes sure that it goes
            interrupted=interrupted,
        )
        ended_at = await _retry_while_unavailable(lambda: self._parts.ledger.release(release))
        if ended_at is not None:
            self.job = msgspec.structs.replace(failed, completed_at=ended_at)
            await self._discard_output()
            return True
        insert = partial(self._parts.jobs.insert_failed, failed, self._ticket.account_id, interrupted=interrupted)
        while not await self._yield_to_record():
            inserted = await _retry_while_unavailable(insert)
            if inserted is not None:
                self.job = inserted
                return True
        return False

    async def _convert(self, run: Run) -> _Converted:
        ticket, engine = self._ticket, self._parts.engine
        source, target, request = ticket.source, ticket.target, ticket.request
        look = await inspect_source(engine, run, source, target, self._directory, request=request)
        self._learn(look.facts)
        plan = plan_conversion(look.source, target, look.facts, request, engine.catalogue)
        self._learn(plan.converted)
        await engine.convert(run, look.source, plan, self._directory)
        told = await verify_output(engine, run, look.source, plan, self._directory)
        return _Converted(look, plan, told)

    @property
    def _directory(self) -> Path:
        return self._directories[-1]

    @property
    def _is_in_memory(self) -> bool:
        return self._parts.work_area.is_in_memory(self._directory)

    def _in_memory(self, run: Run) -> Run:
        """Let commands take a little memory for their files, and no more: what needs more is done on disk."""

        async def run_in_memory(command: Command) -> Verdict:
            most = min(command.limits.directory_bytes, MEMORY_BYTES)
            limits = msgspec.structs.replace(command.limits, file_bytes=most, directory_bytes=most)
            verdict = await run(msgspec.structs.replace(command, limits=limits))
            if verdict.ending in {Ending.OUTPUT_SIZE, Ending.DISK_FULL}:
                raise _OutgrownMemoryError
            return verdict

        return run_in_memory

    def _learn(self, facts: Facts) -> None:
        self.job = msgspec.structs.replace(
            self.job, feature_count=facts.feature_count, geometry_type=facts.geometry_type
        )

    def _settlement(self, output: Output) -> Settlement:
        return Settlement(
            job_id=self.job.id,
            attempt=self.job.attempt,
            retention_hours=self._ticket.retention_hours,
            processing_time_ms=self._elapsed_ms(),
            feature_count=self.job.feature_count or 0,
            geometry_type=self.job.geometry_type or "None",
            output_size_bytes=output.size_bytes,
            download_name=self._download_name(output),
            media_type=output.media_type,
            details=self._details.encode(),
        )

    async def _yield_to_record(self) -> bool:
        """Take the end that somebody else gave the job, and remove what this attempt has stored, and only that.

        Return False if there is no such job any more.

        Raises:
            Overloaded: another attempt has the job, and has not ended.
        """
        try:
            found = await _retry_while_unavailable(lambda: self._parts.jobs.find(self.job.id, self._ticket.account_id))
        except JobNotFound:
            await self._discard_output()
            return False
        if found.object_key != self._key:
            await self._discard_output()
        if found.status not in ENDED:
            message = f"The job {self.job.id} is being worked on elsewhere; its record tells how it ends."
            raise Overloaded(message, RETRY_AFTER_SECONDS)
        self.job = found
        return True

    def _complete(self, settlement: Settlement, settled: Settled) -> None:
        balance = settled.balance
        details = msgspec.structs.replace(
            self._details,
            remaining_conversions=balance.remaining_conversions,
            remaining_bytes=balance.remaining_bytes,
            wallet_cents=balance.wallet_cents,
        )
        self.job = msgspec.structs.replace(
            self.job,
            status=Status.COMPLETED,
            completed_at=settled.completed_at,
            expires_at=settled.expires_at,
            processing_time_ms=settlement.processing_time_ms,
            output_size_bytes=settlement.output_size_bytes,
            object_key=self._key,
            download_name=settlement.download_name,
            media_type=settlement.media_type,
            details=details,
        )
        self._count(settlement)
        _log.info(
            events.JOB_COMPLETED,
            job_id=self.job.id,
            input=self.job.input_format,
            output=self.job.output_format,
            input_bytes=self.job.input_size_bytes,
            output_bytes=self.job.output_size_bytes,
            milliseconds=self.job.processing_time_ms,
        )

    def _count(self, settlement: Settlement) -> None:
        pair = (self._ticket.source.format.token, self._ticket.target.token)
        metrics.JOBS_ENDED.labels("completed").inc()
        metrics.CONVERSION_SECONDS.labels(*pair).observe(settlement.processing_time_ms / 1000)
        metrics.INPUT_BYTES.inc(self.job.input_size_bytes)
        metrics.OUTPUT_BYTES.inc(settlement.output_size_bytes)

    async def _discard_output(self) -> None:
        if self._may_be_stored:
            try:
                with observed("delete"):
                    await self._parts.storage.delete([self._key])
            except StorageUnavailable as unavailable:
                _log.warning(events.STORAGE_FAILED, job_id=self.job.id, fault=unavailable.fault)

    def _download_name(self, output: Output) -> str:
        return download_name(self.job.original_file_name, output.extension)

    def _elapsed_ms(self) -> int:
        return round((anyio.current_time() - self._since) * 1000)


def _details(output: Output, done: _Converted) -> Details:
    """What the answer says of a success; a Shapefile comes with a report on what it lost (interface 2.4)."""
    warnings = (*output.warnings, *done.differences)
    if not done.plan.writing.loss_report:
        return Details(warnings=warnings, output_epsg=output.output_epsg)
    found = done.look.scan if done.look.scan is not None else findings_of(done.plan.converted)
    return Details(
        warnings=(*warnings, *extra_warnings(found)),
        output_epsg=output.output_epsg,
        truncation_report=msgspec.to_builtins(report(found)),
    )


async def _retry_while_unavailable(change: Callable[[], Awaitable[_T]]) -> _T:
    """Make a change of the database that may be repeated, again and again while the database is away."""
    give_up_at = anyio.current_time() + DATABASE_RETRY_SECONDS
    pause = 0.1
    while True:
        try:
            return await change()
        except RetryableFault:
            if anyio.current_time() + pause > give_up_at:
                raise
        await anyio.sleep(pause)
        pause = min(pause * 2, 2.0)
