"""The steps bound to the request: detect the upload's format, choose the target, admit the conversion."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from service.errors import Rejection
from service.formats.detect import Depth
from service.formats.format import Format
from service.formats.request import ConversionRequest
from service.formats.source import Source
from service.formats.target import choose_target
from service.ids import AccountId, JobId
from service.intake.form import MEBIBYTE, Upload
from service.intake.workspace import Workspace
from service.jobs.records import Job
from service.metering.ledger import Admission, AdmissionRequest
from service.storage.port import new_key
from service.telemetry.stage import stage
from service.telemetry.tracing import span
from service.usecases.detect_format import detect_received
from service.usecases.services import Services


class ConversionOrder(msgspec.Struct, frozen=True, kw_only=True):
    """An upload and the requested conversion, with an Idempotency-Key if there is a `key`.

    With `durable`, the client receives the job's id before the job has ended.
    """

    job_id: JobId
    account_id: AccountId
    upload: Upload
    request: ConversionRequest
    workspace: Workspace
    durable: bool = False
    key: str | None = None


Attempt = Callable[[], Awaitable[Admission]]
"""Attempts to admit one file, or raises `LimitRefusal`."""
Gate = Callable[[Attempt], Awaitable[Admission]]
"""Decides when, how often and whether the admission of a file is attempted."""


class Desk(msgspec.Struct, frozen=True):
    """The tools of the accepting steps."""

    services: Services
    gate: Gate


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """An upload as received, and its job as far as it is known."""

    order: ConversionOrder
    job: Job


class Detected(Received, frozen=True, kw_only=True):
    """The format of the upload is known."""

    source: Source


class Aimed(Detected, frozen=True, kw_only=True):
    """The target is chosen."""

    target: Format


class Admitted(Aimed, frozen=True, kw_only=True):
    """The conversion is reserved, and the job is in the database."""

    admission: Admission


async def detect(desk: Desk, received: Received) -> Detected:
    """Detect the format of the upload.

    Raises:
        Rejection: the upload is too large, or the service does not accept it.
    """
    order = received.order
    if order.upload.oversize:
        ceiling = desk.services.intake.max_file_bytes // MEBIBYTE
        raise Rejection(
            f"The file exceeds {ceiling} MB, the largest size that the service accepts. Split it into smaller files."
        )
    with span("detect", job_id=str(received.job.id)):
        depth = Depth.TEXT if desk.services.converts else Depth.FORMAT
        limits = desk.services.engine.limits
        upload, source = await detect_received(order.upload, limits, order.account_id, order.workspace, depth)
    if upload is not order.upload:
        order = msgspec.structs.replace(order, upload=upload)
    job = msgspec.structs.replace(received.job, input_format=source.format.token)
    return Detected(order=order, job=job, source=source)


async def choose(desk: Desk, detected: Detected) -> Aimed:
    """Choose the target format.

    Raises:
        Rejection: the format is unknown or the same as the source's, or one of the two is not available.
        Overloaded: no worker is known.
    """
    asked, offer = detected.order.request.output, desk.services.offer
    offer.require_readable(detected.source.format)
    target = choose_target(detected.source.format, asked, offer.unwritable())
    job = msgspec.structs.replace(detected.job, output_format=target.token)
    return Aimed(order=detected.order, job=job, source=detected.source, target=target)


async def admit(desk: Desk, aimed: Aimed) -> Admitted:
    """Reserve the conversion when the gate allows it.

    Raises:
        LimitRefusal: a limit refuses the file.
        IdempotencyKeyInUse: another request has taken over the file's idempotency key.
    """
    admission = await desk.gate(partial(_admit, desk.services, aimed))
    job = msgspec.structs.replace(aimed.job, created_at=admission.admitted_at)
    return Admitted(order=aimed.order, job=job, source=aimed.source, target=aimed.target, admission=admission)


async def _admit(services: Services, aimed: Aimed) -> Admission:
    order, job = aimed.order, aimed.job
    request = AdmissionRequest(
        job_id=job.id,
        account_id=order.account_id,
        server_id=services.leases.server_id,
        file_name=job.original_file_name,
        input_format=aimed.source.format.token,
        output_format=aimed.target.token,
        size_bytes=job.input_size_bytes,
        object_name=new_key(),
        durable=order.durable,
        key=order.key,
    )
    with stage("admit", job_id=str(job.id)):
        return await services.ledger.admit(request)
