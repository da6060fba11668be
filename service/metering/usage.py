"""What was used: per account and day for accounting, and who has nearly used up an allowance."""

import csv
import io
from collections.abc import Sequence
from datetime import date

import msgspec

from service.db.pool import Database
from service.db.queries import load
from service.ids import AccountId, OrganizationId, PayerId

_SQL = load("usage")

NEARLY_PERCENT = 80
"""The share of an allowance at which operators are notified."""


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one account was charged for on one day (UTC); `cents` is prepaid credit."""

    day: date
    account_id: AccountId
    files: int
    conversions: int
    bytes: int
    cents: int


class NearlyUsed(msgspec.Struct, frozen=True, kw_only=True):
    """A payer that has used most of an allowance of the current month: an account, or an organization."""

    payer_id: PayerId
    account_id: AccountId | None
    organization_id: OrganizationId | None
    allowance: str
    used: int
    allowed: int


class UsageReports:
    """Usage in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def by_day(self, first: date, last: date, account_id: AccountId | None = None) -> list[DailyUsage]:
        """Return the usage per account and day, in order of the days, as far back as charges are kept."""
        rows = await self._database.fetch(_SQL["by_day"], first, last, account_id)
        return [DailyUsage(**row) for row in rows]

    async def notice_nearly_used(self) -> list[NearlyUsed]:
        """Return the allowances that were nearly used since the last call; each once a month, by any process."""
        rows = await self._database.fetch(_SQL["nearly_used"], NEARLY_PERCENT)
        return [NearlyUsed(**row) for row in rows]


def as_csv(usage: Sequence[DailyUsage]) -> str:
    """Return usage as CSV (RFC 4180) with a header."""
    text = io.StringIO()
    writer = csv.writer(text)
    fields = DailyUsage.__struct_encode_fields__
    writer.writerow(fields)
    writer.writerows(msgspec.structs.astuple(row) for row in usage)
    return text.getvalue()
