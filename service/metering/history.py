"""How long jobs, charges, counters and revoked keys are kept; what is pruned leaves books that can still be audited.

A charge goes after its job, and both no earlier than the operator says. What pruned charges add up to is kept for each
payer and month, and for each payer once the month is closed, so that counters and balances can still be derived.
"""

import msgspec

from service.db.pool import Database
from service.db.queries import load

_SQL = load("history")

PRUNED = ("jobs", "charges", "months", "revoked_keys")
"""What is pruned, in this order: what a later one needs gone, an earlier one removes."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """For how long history is kept: days after the end of a job or of a key, months before the current one."""

    job_days: int
    ledger_months: int
    revoked_key_days: int


class History:
    """What has ended, on one database."""

    def __init__(self, database: Database, retention: Retention) -> None:
        self._database = database
        self._kept_for = {
            "jobs": retention.job_days,
            "charges": retention.ledger_months,
            "months": retention.ledger_months,
            "revoked_keys": retention.revoked_key_days,
        }

    async def prune(self, what: str, at_once: int) -> int:
        """Remove up to `at_once` rows of one of `PRUNED` that are past their time; return how many."""
        async with self._database.connection() as connection:
            return int(await connection.fetchval(_SQL[what], self._kept_for[what], at_once))
