"""Idempotency-Key: a repeated request is converted once and counts once.

A claim names the jobs before they exist, and only jobs that it names are admitted with its key. A request that takes
over a key names other jobs, so that no earlier request can admit anything more. A claim lasts for one lease unless its
process renews it, which it does while it admits; after that the state of the jobs shows whether the request is still in
progress.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal
from uuid import UUID

import msgspec

from service.clock import DatabaseClock
from service.db.pool import Database
from service.db.queries import load
from service.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from service.ids import AccountId, JobId

_SQL = load("idempotency")

INTERRUPTED = "The service was interrupted while it converted this file. Nothing was counted; send the file again."


class KeyClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A request that claims a key; `fingerprint` is a hash of its files and fields.

    `job_ids` are the new jobs of its files, in order.
    """

    account_id: AccountId
    key: str
    fingerprint: bytes
    job_ids: tuple[JobId, ...]


class Held(msgspec.Struct, frozen=True):
    """A key held by a request: the jobs of its files, some of which earlier requests may have finished."""

    claim: KeyClaim
    job_ids: tuple[JobId, ...]

    @property
    def earlier(self) -> frozenset[JobId]:
        """The jobs that earlier requests have finished."""
        return frozenset(self.job_ids) - frozenset(self.claim.job_ids)

    @property
    def is_answered(self) -> bool:
        """Whether earlier requests have finished all jobs."""
        return len(self.earlier) == len(self.job_ids)

    @property
    def token(self) -> JobId:
        """A job that only this claim names."""
        return next(job_id for job_id in self.job_ids if job_id not in self.earlier)


class IdempotencyKeys:
    """The keys of all accounts in one database, and those with which this process is admitting files."""

    def __init__(self, database: Database, lease: timedelta, clock: DatabaseClock) -> None:
        """Let a claim expire after `lease` unless it is renewed; `clock` tells how old a key may be."""
        self._database = database
        self._lease = lease
        self._clock = clock
        self._admitting: dict[JobId, Held] = {}

    async def claim(self, claim: KeyClaim) -> Held:
        """Claim the key for a request, or return the jobs of the first request with it.

        A claim must be passed to its jobs or freed afterwards.

        Raises:
            IdempotencyKeyReused: the first request had another file or other fields.
            IdempotencyKeyInUse: an earlier request is still in progress; its response may have been lost, so its jobs
                are named.
        """
        row = await self._database.fetchrow(
            _SQL["claim"],
            claim.account_id,
            claim.key,
            claim.fingerprint,
            claim.job_ids,
            self._lease,
            INTERRUPTED,
            self._clock.latest(),
        )
        if row is None:
            raise AssertionError("The statement `claim` always returns one row")
        if row["verdict"] == "in use":
            jobs = await self._database.fetch(_SQL["named_jobs"], claim.account_id, claim.key)
            raise IdempotencyKeyInUse([str(job["id"]) for job in jobs])
        held = _held(claim, row["verdict"], row["jobs"])
        if not held.is_answered:
            self._admitting[held.token] = held
        return held

    async def prolong(self) -> None:
        """Renew the claims of all keys with which this process is admitting files."""
        if admitting := list(self._admitting.items()):
            accounts = [held.claim.account_id for _, held in admitting]
            keys = [held.claim.key for _, held in admitting]
            tokens = [token for token, _ in admitting]
            await self._database.execute(_SQL["prolong"], accounts, keys, tokens, self._lease)

    def let_go(self, held: Held) -> None:
        """Hand a key over to its jobs, all of which are open or have ended."""
        self._admitting.pop(held.token, None)

    async def give_back(self, held: Held) -> None:
        """Free the key of an aborted request. If this fails as well, its lease expires."""
        self.let_go(held)
        await self._database.execute(_SQL["give_back"], held.claim.account_id, held.claim.key, held.token)

    async def forget_old(self) -> None:
        """Remove keys that are older than 24 hours by all clocks; until then they answer."""
        await self._database.execute(_SQL["forget"], self._clock.earliest())


def _held(claim: KeyClaim, verdict: Literal["taken", "answered", "reused"], jobs: Sequence[UUID]) -> Held:
    if verdict == "reused":
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used with a different file or different fields. Use a new key for a new request."
        )
    return Held(claim, tuple(JobId(job_id) for job_id in jobs))
