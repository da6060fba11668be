"""Ends jobs that were handed over by a version whose messages no worker understands any more."""

import structlog

from service.jobs.deliveries import Delivery
from service.jobs.handover import READS, proof_of, stamp_of
from service.jobs.leases import Leases
from service.metering.ledger import Release
from service.telemetry import events, metrics
from service.usecases.ending import JobParts, retry_while_unavailable

_log = structlog.get_logger()

OUTDATED = (
    "The service was updated before the conversion began, and can no longer do it. Nothing was counted; send the "
    "file again."
)
_OUTCOME = "outdated"
metrics.start_at_zero(metrics.JOBS_ENDED, (_OUTCOME,))


async def end_if_outdated(parts: JobParts, leases: Leases, delivery: Delivery) -> bool:
    """Fail the job of a message that is too old for all living workers; return whether it has ended.

    The message counts only if its gateway has sealed or recorded it: anyone could send another. A gateway that still
    waits for the end of the job finds it in the database.
    """
    stamp = stamp_of(delivery.data)
    if stamp.version >= READS[0] or delivery.job_id is None:
        return False
    proof = proof_of(delivery.data, stamp.seal)
    job = await leases.unreadable(delivery.job_id, delivery.data, stamp.version, proof)
    if job is None:
        return False
    release = Release(
        job_id=job.id,
        attempt=job.attempt,
        error_message=OUTDATED,
        object_key=job.object_key,  # a worker that was lost may have stored it
        interrupted=True,
    )
    if await retry_while_unavailable(lambda: parts.ledger.release(release)) is None:
        return False
    metrics.JOBS_ENDED.labels(_OUTCOME).inc()
    _log.warning(events.JOB_OUTDATED, job_id=job.id, version=stamp.version)
    return True
