"""Everything before the seam: detect, then admit. Until the job is submitted a client that leaves leaves nothing."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec
import structlog

from sandbox.pool import QueueTicket
from service.errors import IdempotencyKeyInUse, LimitRefusal, MultipleLayers, Rejection
from service.formats.detect import Source
from service.formats.format import Format
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.ids import AccountId, JobId
from service.intake.form import MEBIBYTE, Upload
from service.intake.workspace import Workspace
from service.jobs.dispatch import JobSpec, Submission, ended
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.metering.ledger import Admission, AdmissionRequest
from service.storage.port import new_key
from service.telemetry import events, metrics
from service.telemetry.stage import stage
from service.usecases.detect_format import detect_format
from service.usecases.services import Services

_log = structlog.get_logger()


class ConversionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An upload and what its sender asks for, under an Idempotency-Key if there is a `key`.

    With `durable` the sender is promised the job before it has ended.
    """

    job_id: JobId
    account_id: AccountId
    upload: Upload
    request: ConversionRequest
    workspace: Workspace
    durable: bool = False
    key: str | None = None


Attempt = Callable[[], Awaitable[Admission]]
"""Tries to admit one file, or raises `LimitRefusal`."""
Gate = Callable[[Attempt], Awaitable[Admission]]
"""Decides when, how often and whether at all the admission of a file is tried."""


async def straight(attempt: Attempt) -> Admission:
    """Try once: the gate of a single file."""
    return await attempt()


async def accept_upload(
    services: Services, order: ConversionOrder, place: QueueTicket, gate: Gate = straight
) -> Submission:
    """Turn a received file into a job that runs, or into a Failed one that says why not (interface 3).

    The place is used, or released.

    Raises:
        IdempotencyKeyInUse: another request has taken the key over; this one has made nothing of the file.
    """
    submitted = False
    try:
        with services.runner.admitting(order.job_id):
            submission = await _submit_or_refuse(services, order, place, gate)
        submitted = submission.job.status is not Status.FAILED
        return submission
    finally:
        if not submitted:
            services.pool.release(place)


async def refuse_upload(services: Services, order: ConversionOrder, rejection: Rejection) -> Submission:
    """Turn a received file into a Failed job without looking at it.

    Raises:
        IdempotencyKeyInUse: as `accept_upload`.
    """
    return await _refuse(services, order, _new_job(services, order), rejection)


def _new_job(services: Services, order: ConversionOrder) -> Job:
    return Job(
        id=order.job_id,
        status=Status.PENDING,
        original_file_name=order.upload.untrusted_name,
        input_format=None,
        output_format=None,
        input_size_bytes=order.upload.size_bytes,
        created_at=services.clock(),  # until the database has set its own time
    )


async def _submit_or_refuse(services: Services, order: ConversionOrder, place: QueueTicket, gate: Gate) -> Submission:
    job = _new_job(services, order)
    try:
        source = await _detect(services, order)
        job = msgspec.structs.replace(job, input_format=source.format.token)
        target = choose_target(source.format, order.request.output, services.unavailable_formats)
        job = msgspec.structs.replace(job, output_format=target.token)
        admission = await gate(partial(_admit, services, order, job))
    except Rejection as rejection:
        return await _refuse(services, order, job, rejection)
    return _submit(services, order, place, _Admitted(job, source, target, admission))


class _Admitted(msgspec.Struct, frozen=True):
    job: Job
    source: Source
    target: Format
    admission: Admission


async def _detect(services: Services, order: ConversionOrder) -> Source:
    upload = order.upload
    if upload.oversize:
        ceiling = services.intake.max_file_bytes // MEBIBYTE
        raise Rejection(
            f"The file is above {ceiling} MB, the most that the service takes. Split it into smaller files."
        )
    return await detect_format(upload)


async def _admit(services: Services, order: ConversionOrder, job: Job) -> Admission:
    with stage("admit"):
        return await services.ledger.admit(_application(services, order, job))


def _application(services: Services, order: ConversionOrder, job: Job) -> AdmissionRequest:
    return AdmissionRequest(
        job_id=job.id,
        account_id=order.account_id,
        server_id=services.leases.server_id,
        file_name=job.original_file_name,
        input_format=job.input_format or "",
        output_format=job.output_format or "",
        size_bytes=job.input_size_bytes,
        object_name=new_key(),
        durable=order.durable,
        key=order.key,
    )


def _submit(services: Services, order: ConversionOrder, place: QueueTicket, admitted: _Admitted) -> Submission:
    metrics.JOBS_ADMITTED.labels(admitted.source.format.token).inc()
    _log.info(events.JOB_ADMITTED, job_id=admitted.job.id, input=admitted.job.input_format)
    ticket = JobSpec(
        job=msgspec.structs.replace(admitted.job, created_at=admitted.admission.admitted_at),
        account_id=order.account_id,
        source=admitted.source,
        target=admitted.target,
        request=order.request,
        directory=order.workspace.handover(order.upload.directory),
        retention_hours=admitted.admission.retention_hours,
        object_key=admitted.admission.object_key,
    )
    return services.runner.submit(ticket, place)


async def _refuse(services: Services, order: ConversionOrder, job: Job, rejection: Rejection) -> Submission:
    failed = msgspec.structs.replace(
        job, status=Status.FAILED, error_message=rejection.message, details=details_of(rejection)
    )
    refused = await services.jobs.insert_failed(failed, order.account_id, key=order.key)
    if refused is None:
        raise IdempotencyKeyInUse
    metrics.JOBS_REFUSED.labels(_reason(refused.details)).inc()
    _log.info(events.JOB_REFUSED, job_id=refused.id, limit=refused.details.limit, reason=type(rejection).__name__)
    return ended(refused)


def _reason(details: Details) -> str:
    """Return what refused a file, for operators: a limit, a payment, or the file itself."""
    return details.limit or ("payment" if details.payment_past_due else "file")


def details_of(rejection: Rejection) -> Details:
    """Return the flags of an answer that a rejection brings (interface 7)."""
    if isinstance(rejection, LimitRefusal):
        return Details(
            limit=rejection.limit,
            needs_upgrade=rejection.needs_upgrade,
            payment_past_due=rejection.payment_past_due,
        )
    if isinstance(rejection, MultipleLayers):
        return Details(target_format=rejection.target_format, layers=rejection.layers)
    return Details()
