"""Requests that may be repeated: their fingerprint, and the work that is left to do."""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
import msgspec

from service.accounts.idempotency import Held, KeyClaim
from service.intake.form import Form
from service.jobs.records import Job
from service.usecases.services import Services
from service.usecases.steps.accepting import ConversionOrder


def fingerprint(endpoint: str, form: Form) -> bytes:
    """Return a hash of everything that identifies a request: its endpoint, its fields and its files."""
    files = [(upload.untrusted_name, upload.size_bytes, upload.digest) for upload in form.files]
    fields: Mapping[str, Sequence[str]] = dict(sorted(form.fields.items()))
    return hashlib.sha256(msgspec.msgpack.encode((endpoint, fields, files))).digest()


@asynccontextmanager
async def still_to_do(
    services: Services, claim: KeyClaim | None, orders: Sequence[ConversionOrder]
) -> AsyncIterator[Sequence[ConversionOrder | Job]]:
    """Yield the orders of a request, with ended jobs in place of those that earlier requests with its key finished.

    Without a key (`claim` is None), every request counts as the first.

    Raises:
        IdempotencyKeyReused, IdempotencyKeyInUse: see `IdempotencyKeys.claim`.
    """
    if claim is None:
        yield orders
        return
    held = await services.idempotency.claim(claim)
    if held.is_answered:
        yield await _merge(services, held, orders)
        return
    try:
        yield await _merge(services, held, orders)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await services.idempotency.give_back(held)
        raise
    services.idempotency.let_go(held)


async def _merge(services: Services, held: Held, orders: Sequence[ConversionOrder]) -> list[ConversionOrder | Job]:
    if not held.earlier:
        return list(orders)
    found = {job.id: job for job in await services.jobs.find_all(list(held.earlier), held.claim.account_id)}
    return [found.get(job_id, order) for job_id, order in zip(held.job_ids, orders, strict=True)]
