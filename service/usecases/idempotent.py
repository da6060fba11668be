"""A request that may come twice (contract 3): its fingerprint, and the first answer again."""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec

from service.accounts.idempotency import Claim
from service.identifiers import AccountId, JobId
from service.intake.form import Form
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.usecases.services import Services

NOT_REACHED = (
    "The service was interrupted before it came to this file. Nothing was counted; send it again with a new key."
)


def fingerprint(endpoint: str, form: Form) -> bytes:
    """Return a hash over everything that tells one request from another: where it goes, its fields, its files."""
    files = [(upload.untrusted_name, upload.size_bytes, upload.digest) for upload in form.files]
    fields: Mapping[str, Sequence[str]] = dict(sorted(form.fields.items()))
    return hashlib.sha256(msgspec.msgpack.encode((endpoint, fields, files))).digest()


@asynccontextmanager
async def first_answer(services: Services, claim: Claim | None, form: Form) -> AsyncIterator[list[Job] | None]:
    """Yield the ended jobs of the first request with this key, or None: then the block is the first request.

    Without a key (`claim` None) every request is a first one.

    Raises:
        IdempotencyKeyReused, IdempotencyKeyInUse: see `IdempotencyKeys.claim`.
    """
    earlier = await services.idempotency.claim(claim) if claim is not None else None
    if claim is None or earlier is not None:
        yield await _jobs_of(services, claim.account_id, earlier, form) if claim and earlier else None
        return
    try:
        yield None
    except BaseException:
        with anyio.CancelScope(shield=True):
            await services.idempotency.give_back(claim)
        raise


async def _jobs_of(services: Services, account_id: AccountId, job_ids: Sequence[JobId], form: Form) -> list[Job]:
    found = {job.id: job for job in await services.jobs.find_all(job_ids, account_id)}
    now = services.clock()
    return [
        found.get(job_id)
        or Job(
            id=job_id,
            status=Status.FAILED,
            original_file_name=upload.untrusted_name,
            input_format=None,
            output_format=None,
            input_size_bytes=upload.size_bytes,
            created_at=now,
            error_message=NOT_REACHED,
        )
        for job_id, upload in zip(job_ids, form.files, strict=True)
    ]
