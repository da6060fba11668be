"""The three changes of a reservation, each one round trip to PostgreSQL: admit, settle, release (contract 4)."""

from datetime import datetime
from typing import Any

import msgspec

from service.db.pool import Database
from service.db.queries import load
from service.errors import LimitRefusal
from service.identifiers import AccountId, JobId, ServerId
from service.metering.balance import Balance, balance_from
from service.metering.limits import Standing, refusal
from service.metering.plans import PLANS, WALLET_RETENTION_HOURS
from service.metering.pricing import Pricing

_SQL = load("metering")


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """A file that asks to be admitted; `size_bytes` is the upload as received.

    A `durable` admission survives a crash of the database from the moment it is returned; another one does so from
    its settlement on, which costs one flush less.
    """

    job_id: JobId
    account_id: AccountId
    server_id: ServerId
    file_name: str
    input_format: str
    output_format: str
    size_bytes: int
    at: datetime
    durable: bool = False


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """An admitted file: for how many hours its output is kept, and in which region ("" is home)."""

    retention_hours: int
    storage_region: str


class Settlement(msgspec.Struct, frozen=True, kw_only=True):
    """The success of one attempt of a job, to be charged and published at once."""

    job_id: JobId
    attempt: int
    completed_at: datetime
    expires_at: datetime
    processing_time_ms: int
    feature_count: int
    geometry_type: str
    output_size_bytes: int
    object_key: str
    download_name: str
    media_type: str
    details: dict[str, Any]


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a job: nothing is charged. Without `attempt`, whichever attempt holds it.

    `object_key` names an output that could not be removed yet.
    """

    job_id: JobId
    attempt: int | None
    completed_at: datetime
    error_message: str
    details: dict[str, Any]
    feature_count: int | None = None
    geometry_type: str | None = None
    processing_time_ms: int | None = None
    object_key: str | None = None


class Books:
    """Admission and settlement on one database."""

    def __init__(self, database: Database, pricing: Pricing) -> None:
        self._database = database
        self._pricing = pricing

    async def admit(self, application: Application) -> Admission:
        """Reserve one conversion and insert its job as Pending.

        Raises:
            LimitRefusal: the first limit that refuses, in the order of contract 4; nothing was written.
        """
        price = self._pricing.price_cents(application.size_bytes)
        async with self._database.connection() as connection:
            row = await connection.fetchrow(
                _SQL["admit"],
                application.job_id,
                application.account_id,
                application.server_id,
                application.file_name,
                application.input_format,
                application.output_format,
                application.size_bytes,
                price,
                application.at,
                application.durable,
            )
        if row is None:
            message = "The statement `admit` always returns one row"
            raise AssertionError(message)
        if not row["admitted"]:
            raise _refusal(row, application.size_bytes, price)
        hours = row["retention_hours"] or WALLET_RETENTION_HOURS
        return Admission(retention_hours=hours, storage_region=row["storage_region"] or "")

    async def settle(self, settlement: Settlement) -> Balance | None:
        """Complete a job and write its ledger row; return what is left, or None if this attempt no longer holds it."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(_SQL["settle"], *msgspec.structs.astuple(settlement))
        return balance_from(dict(row)) if row is not None else None

    async def release(self, release: Release) -> bool:
        """Fail a job and give its reservation back; return False if it had ended, or another attempt holds it."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(_SQL["release"], *msgspec.structs.astuple(release))
        return row is not None

    async def balance(self, account_id: AccountId, now: datetime) -> Balance:
        """Return what the account has left in the month of `now`."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(_SQL["balance"], account_id, now)
        if row is None:
            message = "An authenticated account always exists"
            raise AssertionError(message)
        return balance_from(dict(row))

    async def reservations(self) -> int:
        """Return how many jobs of all processes hold a reservation now."""
        async with self._database.connection() as connection:
            return int(await connection.fetchval(_SQL["reservations"]))


async def publish_plans(database: Database) -> None:
    """Write the plans of `metering.plans` to the database, where admission reads them."""
    async with database.connection() as connection:
        for plan in PLANS:
            await connection.execute(
                _SQL["publish_plan"],
                plan.id,
                plan.owner,
                plan.monthly_conversions,
                plan.monthly_data_bytes,
                plan.max_file_bytes,
                plan.retention_hours,
                plan.storage_region_choice,
            )


def _refusal(row: Any, size_bytes: int, price_cents: int) -> LimitRefusal:
    standing = Standing(
        may_convert=bool(row["may_convert"]),
        past_due=bool(row["past_due"]),
        plan_id=row["plan_id"],
        max_file_bytes=row["max_file_bytes"],
        monthly_conversions=row["monthly_conversions"],
        monthly_data_bytes=row["monthly_data_bytes"],
        used_conversions=row["used_conversions"],
        used_bytes=row["used_bytes"],
        wallet_cents=row["wallet_cents"],
    )
    refused = refusal(standing, size_bytes, price_cents)
    if refused is None:
        message = "The database refused a file that no rule refuses"
        raise AssertionError(message)
    return refused
