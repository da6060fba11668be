"""The primary of a database is lost, and its standby takes over."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import pytest
from anyio.to_thread import run_sync

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db import pool
from service.db.migrate import migrate
from service.db.pool import Database, open_pool
from service.errors import DatabaseUnavailable
from service.ids import JobId, uuid7
from service.metering.audit import audit_books
from service.metering.ledger import Ledger, publish_plans
from service.metering.pricing import Pricing
from tests.database import database_name
from tests.integration.metering.test_interleavings import START
from tests.support.jobs import application, settlement
from tests.support.replication import running_pair

T = TypeVar("T")
COMMAND_SECONDS = 1.0
CONNECT_SECONDS = 5.0


async def once_it_is_back(ask: Callable[[], Awaitable[T]]) -> T:
    """Retry until the database answers."""
    while True:
        try:
            return await ask()
        except DatabaseUnavailable:
            await anyio.sleep(0.1)


async def write(database: Database) -> None:
    """Execute a write."""
    async with database.connection() as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS t (n int)")
        await connection.execute("INSERT INTO t VALUES (1)")


async def test_a_silent_primary_is_left_for_its_standby(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is unavailable until the standby is promoted; then an existing pool finds it."""
    monkeypatch.setattr(pool, "CONNECT_SECONDS", CONNECT_SECONDS)
    with running_pair(synchronous=False) as pair:
        async with open_pool(
            pair.dsn, command_timeout_seconds=COMMAND_SECONDS, acquire_timeout_seconds=CONNECT_SECONDS
        ) as database:
            await once_it_is_back(lambda: write(database))
            await run_sync(pair.primary.freeze)
            for _ in range(2):  # over the connection to the old primary, and over a new one
                with pytest.raises(DatabaseUnavailable):
                    await write(database)
            await run_sync(pair.standby.promote)
            await once_it_is_back(lambda: write(database))


async def test_a_settlement_is_not_confirmed_before_the_standby_has_it() -> None:
    """Nor is one that the primary committed alone because the wait for the standby was given up."""
    with running_pair(synchronous=True) as pair:
        await migrate(pair.dsn)
        job_id = JobId(uuid7(START))
        async with open_pool(pair.dsn) as patient:
            await publish_plans(patient)
            account, _ = await Administration(patient, utc_now).create_account("a", Terms(plan="free"))
            await Ledger(patient, Pricing()).admit(application(account.account_id, 1, job_id))
        async with open_pool(pair.dsn, command_timeout_seconds=COMMAND_SECONDS) as database:
            ledger = Ledger(database, Pricing())
            await run_sync(pair.primary.freeze_sender)
            for _ in range(3):
                with pytest.raises(DatabaseUnavailable):
                    await ledger.settle(settlement(job_id))
            await run_sync(pair.fail_over)
            assert await once_it_is_back(lambda: ledger.settle(settlement(job_id))) is not None
            balance = await once_it_is_back(lambda: ledger.balance(account.account_id))
            assert balance.used_conversions == 1
            assert await once_it_is_back(lambda: audit_books(database)) == []


async def test_a_connection_that_can_only_read_is_replaced(empty_database_url: str) -> None:
    """A server may become a standby while a pool is connected to it; the next connection may lead to another server."""
    name = database_name(empty_database_url)
    async with open_pool(empty_database_url, max_size=1) as database, open_pool(empty_database_url) as other:
        async with other.connection() as connection:
            await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        async with database.connection() as connection:
            await connection.execute("SET default_transaction_read_only = on")
        with pytest.raises(DatabaseUnavailable):
            await write(database)
        async with other.connection() as connection:
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        await once_it_is_back(lambda: write(database))
