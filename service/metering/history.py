"""Retention of jobs, charges, counters and revoked keys; pruning leaves a ledger that can still be audited.

A charge is pruned after its job, and both no earlier than the operator's settings allow. The sums of pruned charges are
kept per payer and month, and per payer once the month is closed, so that counters and balances can still be derived.

Age counts by the clock by which idempotency keys are old: a key must not outlive the jobs from which a repeat is
answered.
"""

import msgspec

from service.clock import Clock
from service.db.pool import Database
from service.db.queries import load

_SQL = load("history")

PRUNED = ("jobs", "charges", "months", "revoked_keys")
"""The kinds of rows that are pruned, in the order that their references require."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long history is kept: days after the end of a job or key, months before the current month."""

    job_days: int
    ledger_months: int
    revoked_key_days: int


class History:
    """The history in one database."""

    def __init__(self, database: Database, retention: Retention, earliest: Clock) -> None:
        """Remove only what is expired by `earliest`, too."""
        self._database = database
        self._earliest = earliest
        self._kept_for = {
            "jobs": retention.job_days,
            "charges": retention.ledger_months,
            "months": retention.ledger_months,
            "revoked_keys": retention.revoked_key_days,
        }

    async def prune(self, what: str, at_once: int) -> int:
        """Remove up to `at_once` expired rows of one kind of `PRUNED`; return how many."""
        return int(await self._database.fetchval(_SQL[what], self._kept_for[what], at_once, self._earliest()))
