"""Idempotency-Key: the same request sent twice converts once and counts once.

A claim names the jobs before they exist, and under its key only jobs that it names are admitted. So whoever takes a
key over makes sure, by naming other jobs, that nobody before it admits anything more. A claim lasts for one lease
unless it is prolonged, which its process does while it admits; after that the jobs themselves tell whether somebody is
at work.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal
from uuid import UUID

import msgspec

from service.db.pool import Database
from service.db.queries import load
from service.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from service.ids import AccountId, JobId

_SQL = load("idempotency")

INTERRUPTED = "The service was interrupted while it converted this file. Nothing was counted; send the file again."


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A request that asks for a key; `fingerprint` is a hash over its files and fields.

    `job_ids` are new: what its files become, in their order.
    """

    account_id: AccountId
    key: str
    fingerprint: bytes
    job_ids: tuple[JobId, ...]


class Held(msgspec.Struct, frozen=True):
    """A key that a request has: the jobs of its files, some of which earlier requests may have brought to their end."""

    claim: Claim
    job_ids: tuple[JobId, ...]

    @property
    def earlier(self) -> frozenset[JobId]:
        """The jobs of earlier requests, which are not to be done again."""
        return frozenset(self.job_ids) - frozenset(self.claim.job_ids)

    @property
    def is_answered(self) -> bool:
        """Whether earlier requests have left nothing to do."""
        return len(self.earlier) == len(self.job_ids)

    @property
    def token(self) -> JobId:
        """A job that is named by this claim alone."""
        return next(job_id for job_id in self.job_ids if job_id not in self.earlier)


class IdempotencyKeys:
    """The keys of every account on one database, and those under which this process is admitting files."""

    def __init__(self, database: Database, lease: timedelta) -> None:
        """Let a claim that is not prolonged end after `lease`."""
        self._database = database
        self._lease = lease
        self._admitting: dict[JobId, Held] = {}

    async def claim(self, claim: Claim) -> Held:
        """Take the key for a request, or return what the first request that had it has come to.

        What was taken is to be let go, or given back.

        Raises:
            IdempotencyKeyReused: the first request had another file or other fields.
            IdempotencyKeyInUse: an earlier request is still being worked on.
        """
        async with self._database.connection() as connection:
            row = await connection.fetchrow(
                _SQL["claim"],
                claim.account_id,
                claim.key,
                claim.fingerprint,
                claim.job_ids,
                self._lease,
                INTERRUPTED,
            )
        if row is None:
            message = "The statement `claim` always returns one row"
            raise AssertionError(message)
        held = _held(claim, row["verdict"], row["jobs"])
        if not held.is_answered:
            self._admitting[held.token] = held
        return held

    async def prolong(self) -> None:
        """Say of all keys under which this process is admitting files that it still is."""
        if admitting := list(self._admitting.items()):
            accounts = [held.claim.account_id for _, held in admitting]
            keys = [held.claim.key for _, held in admitting]
            tokens = [token for token, _ in admitting]
            async with self._database.connection() as connection:
                await connection.execute(_SQL["prolong"], accounts, keys, tokens, self._lease)

    def let_go(self, held: Held) -> None:
        """Leave a key to its jobs, all of which are under way or have ended."""
        self._admitting.pop(held.token, None)

    async def give_back(self, held: Held) -> None:
        """Free a key whose request broke off. If this does not succeed either, it is free when its lease is over."""
        self.let_go(held)
        async with self._database.connection() as connection:
            await connection.execute(_SQL["give_back"], held.claim.account_id, held.claim.key, held.token)

    async def forget_old(self) -> None:
        """Remove keys past their 24 hours."""
        async with self._database.connection() as connection:
            await connection.execute(_SQL["forget"])


def _held(claim: Claim, verdict: Literal["taken", "answered", "in use", "reused"], jobs: Sequence[UUID] | None) -> Held:
    if verdict == "reused":
        raise IdempotencyKeyReused(
            "This Idempotency-Key came before with another file or other fields. Use a new key for a new request."
        )
    if verdict == "in use" or jobs is None:
        raise IdempotencyKeyInUse
    return Held(claim, tuple(JobId(job_id) for job_id in jobs))
