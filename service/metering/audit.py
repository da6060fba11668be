"""Derives all counters again from ledger, sums of pruned charges, and jobs: every difference is a defect.

The audit reads pages, each in one statement and therefore from one snapshot; related rows change in one transaction. So
an audit may take long while the service runs: it raises no false alarms, and blocks neither vacuum nor other work.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import date
from typing import Any
from uuid import UUID

import msgspec

from service.db.pool import Database
from service.db.queries import load

_SQL = load("audit")
_FIRST_ID = UUID(int=0)
_Row = Mapping[str, Any]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A statement that compares one page of rows after a key, and the sentence for a row that differs."""

    statement: str
    after: dict[str, object]
    at_once: int
    sentence: Callable[[_Row], str]


CHECKS: tuple[Check, ...] = (
    Check(
        statement="usage_differences",
        after={"payer_id": _FIRST_ID, "period": date.min},
        at_once=200,
        sentence=lambda row: (
            f"Payer {row['payer_id']}, {row['period']:%Y-%m}: {row['conversions']} conversions and {row['bytes']} "
            f"bytes are counted; ledger and open jobs sum to {row['derived_conversions']} and {row['derived_bytes']}."
        ),
    ),
    Check(
        statement="wallet_differences",
        after={"payer_id": _FIRST_ID},
        at_once=20,
        sentence=lambda row: (
            f"Payer {row['payer_id']}: the wallet holds {row['wallet_cents']} cents; credit, ledger and open jobs "
            f"leave {row['derived_cents']}."
        ),
    ),
    Check(
        statement="job_differences",
        after={"job_id": _FIRST_ID},
        at_once=5_000,
        sentence=lambda row: (
            f"Job {row['job_id']} is {row['status']} and was {'' if row['charged'] else 'not '}charged."
        ),
    ),
    Check(
        statement="charge_differences",
        after={"job_id": _FIRST_ID},
        at_once=5_000,
        sentence=lambda row: (
            f"Job {row['job_id']} was charged but does not exist."
            if row["lacks_job"]
            else f"Job {row['job_id']} was charged to payer {row['payer_id']} in {row['period']:%Y-%m}, "
            "for which there is no counter."
        ),
    ),
)


async def audit_books(database: Database) -> list[str]:
    """Return a sentence for each counter, balance and charge that is wrong."""
    differences = [check.sentence(row) for check in CHECKS async for row in _rows(database, check) if row["differs"]]
    uncounted = await database.fetch(_SQL["uncounted"])
    return [
        *differences,
        *(
            f"Payer {row['payer_id']}, {row['period']:%Y-%m}: there are conversions but no counter."
            for row in uncounted
        ),
    ]


async def _rows(database: Database, check: Check) -> AsyncIterator[_Row]:
    """Yield what a check finds, page by page; rows added meanwhile do not extend it indefinitely."""
    after, more = check.after, True
    while more:
        rows = await database.fetch(_SQL[check.statement], *after.values(), check.at_once)
        for row in rows:
            yield dict(row)
        more = bool(rows) and rows[-1]["more"]
        after = {name: rows[-1][name] for name in after} if rows else after
