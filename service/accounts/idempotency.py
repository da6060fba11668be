"""Idempotency-Key: the same request sent twice converts once and counts once (contract 3).

A claim names the jobs before they exist. So whatever happens to the process that made it, a later request with the
same key finds either those jobs, and answers from them, or none of them and nobody working, and takes the key over.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from service.db.pool import Database
from service.db.queries import load
from service.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from service.identifiers import AccountId, JobId, ServerId

_SQL = load("idempotency")

LIFETIME = timedelta(hours=24)
RETRY_AFTER_SECONDS = 2


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A request that asks for a key; `fingerprint` is a hash over its file and fields."""

    account_id: AccountId
    key: str
    fingerprint: bytes
    server_id: ServerId
    job_ids: tuple[JobId, ...]
    at: datetime


class IdempotencyKeys:
    """The keys of every account on one database."""

    def __init__(self, database: Database, silence: timedelta) -> None:
        """Take a claim's process for dead after `silence` without its heartbeat."""
        self._database = database
        self._silence = silence

    async def claim(self, claim: Claim) -> tuple[JobId, ...] | None:
        """Take the key for a new request and return None, or return the jobs of the first request that had it.

        Raises:
            IdempotencyKeyReused: the first request had another file or other fields.
            IdempotencyKeyInUse: the first request is still being worked on.
        """
        async with self._database.connection() as connection:
            row = await connection.fetchrow(
                _SQL["claim"],
                claim.account_id,
                claim.key,
                claim.fingerprint,
                claim.server_id,
                list(claim.job_ids),
                claim.at,
                claim.at - LIFETIME,
                claim.at - self._silence,
            )
            if row is None:
                row = await connection.fetchrow(_SQL["find"], claim.account_id, claim.key, claim.at - self._silence)
        if row is None:
            raise _in_use()
        if tuple(row["job_ids"]) == claim.job_ids:
            return None
        return _first_request(claim, row["fingerprint"], row["job_ids"], ended=row["ended"])

    async def give_back(self, claim: Claim) -> None:
        """Free a key whose request was refused before it had any job."""
        async with self._database.connection() as connection:
            await connection.execute(_SQL["give_back"], claim.account_id, claim.key, list(claim.job_ids))

    async def forget_old(self, now: datetime) -> None:
        """Remove keys past their 24 hours."""
        async with self._database.connection() as connection:
            await connection.execute(_SQL["forget"], now - LIFETIME)


def _first_request(claim: Claim, fingerprint: bytes, job_ids: Sequence[JobId], *, ended: bool) -> tuple[JobId, ...]:
    if fingerprint != claim.fingerprint:
        raise IdempotencyKeyReused(
            "This Idempotency-Key came before with another file or other fields. Use a new key for a new request."
        )
    if not ended:
        raise _in_use()
    return tuple(job_ids)


def _in_use() -> IdempotencyKeyInUse:
    message = "The first request with this Idempotency-Key is still being worked on. Ask again in a moment."
    return IdempotencyKeyInUse(message, RETRY_AFTER_SECONDS)
