"""The request's part of a conversion: runs the steps bound to the request, then submits the job."""

import msgspec
import structlog

from sandbox.pool import QueueTicket
from service.errors import GeomillError, IdempotencyKeyInUse, Rejection
from service.jobs.dispatch import Submission, ended
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.jobs.spec import JobSpec, source_spec
from service.telemetry import events, metrics
from service.usecases.ending import details_of
from service.usecases.pipeline import ACCEPT, Progress
from service.usecases.services import Services
from service.usecases.steps.accepting import Admitted, ConversionOrder, Desk, Gate, Received

_log = structlog.get_logger()


async def accept_upload(services: Services, order: ConversionOrder, ticket: QueueTicket, gate: Gate) -> Submission:
    """Turn a received file into a running job, or into a Failed one that gives the reason (interface 3).

    The ticket is either passed to the job or released.

    Raises:
        IdempotencyKeyInUse: another request has taken over the key; nothing was recorded for this file.
        Overloaded: the job cannot be promised, because this process stops or the database is away.
    """
    progress = Progress(_received(services, order))
    submission: Submission | None = None
    try:
        with services.runner.admitting(order.job_id):
            try:
                admitted: Admitted = await progress.run(ACCEPT, Desk(services, gate))
            except GeomillError as error:
                if progress.failure(error) is None:
                    raise
                return await _refuse(services, progress.record, error)
            submission = _submit(services, admitted, ticket)
        if order.durable:
            await submission.kept()
        return submission
    finally:
        if submission is None:
            services.pool.release(ticket)


async def refuse_upload(services: Services, order: ConversionOrder, rejection: Rejection) -> Submission:
    """Record a Failed job for a received file without inspecting the file.

    Raises:
        IdempotencyKeyInUse: as `accept_upload`.
    """
    return await _refuse(services, _received(services, order), rejection)


def _received(services: Services, order: ConversionOrder) -> Received:
    job = Job(
        id=order.job_id,
        status=Status.PENDING,
        original_file_name=order.upload.untrusted_name,
        input_format=None,
        output_format=None,
        input_size_bytes=order.upload.size_bytes,
        created_at=services.clock(),  # until the database sets its own time
    )
    return Received(order=order, job=job)


def _submit(services: Services, admitted: Admitted, ticket: QueueTicket) -> Submission:
    order, job = admitted.order, admitted.job
    metrics.labeled(metrics.JOBS_ADMITTED, admitted.source.format.token).inc()
    _log.info(events.JOB_ADMITTED, job_id=job.id, input=job.input_format)
    directory = order.workspace.handover(order.upload.directory)
    spec = JobSpec(
        job=job,
        account_id=order.account_id,
        upload=order.upload.path.name,
        upload_sha256=order.upload.digest or b"",
        source=source_spec(admitted.source, directory),
        target=admitted.target.token,
        request=order.request,
        retention_hours=admitted.admission.retention_hours,
        object_key=admitted.admission.object_key,
        is_promised=order.durable,
    )
    return services.runner.submit(spec, directory, ticket)


async def _refuse(services: Services, received: Received, reason: GeomillError) -> Submission:
    order = received.order
    await order.workspace.discard(order.upload)  # later files of a batch may need its space
    failed = msgspec.structs.replace(
        received.job, status=Status.FAILED, error_message=reason.message, details=details_of(reason)
    )
    refused = await services.jobs.insert_failed(failed, order.account_id, key=order.key)
    if refused is None:
        raise IdempotencyKeyInUse
    metrics.JOBS_REFUSED.labels(_reason(refused.details)).inc()
    _log.info(events.JOB_REFUSED, job_id=refused.id, limit=refused.details.limit, reason=type(reason).__name__)
    return ended(refused)


def _reason(details: Details) -> str:
    """Return the reason for a refusal, as operators see it: a limit, a payment, or the file itself."""
    return details.limit or ("payment" if details.payment_past_due else "file")
