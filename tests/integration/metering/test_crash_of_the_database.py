"""What an admission or a claim is worth if PostgreSQL is killed before flushing it (architecture, decision 1)."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
import msgspec

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db.migrate import migrate
from service.db.pool import Database
from service.errors import DatabaseUnavailable
from service.ids import AccountId, JobId, ServerId, uuid7
from service.jobs.leases import MOST_DEATHS, Leases
from service.metering.audit import audit_books
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from service.postgres_embedded import embedded_postgres
from service.storage.port import new_key
from tests.database import fast_directory
from tests.integration.metering.test_interleavings import START, open_ledger
from tests.sandbox.processes import state_of
from tests.support.jobs import application, settlement

T = TypeVar("T")
LEASE = timedelta(seconds=30)
_WRITER = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter' AND wait_event = 'WalWriterMain'"


async def once_it_is_back(ask: Callable[[], Awaitable[T]]) -> T:
    """Retry until the database answers, as jobs do."""
    while True:
        try:
            return await ask()
        except DatabaseUnavailable:
            await anyio.sleep(0.05)


def postmaster_of(directory: Path) -> int:
    """The id of the server's main process, or 0 if there is none."""
    with suppress(StopIteration, FileNotFoundError, IndexError):
        return int(next(directory.rglob("postmaster.pid")).read_text().split()[0])
    return 0


class Frail(NamedTuple):
    """A database that can be killed, in which asynchronous commits are not flushed by themselves."""

    directory: Path
    database: Database
    ledger: Ledger
    account_id: AccountId

    async def crash(self) -> None:
        """Kill PostgreSQL and wait until it is back."""
        killed, writer = postmaster_of(self.directory), await self.writer()
        assert writer, "it has been suspended where it waits"
        for process in (killed, writer):
            os.kill(process, signal.SIGKILL)
        while postmaster_of(self.directory) in {0, killed}:  # noqa: ASYNC110 -- its keeper starts another one
            await anyio.sleep(0.01)
        await once_it_is_back(lambda: audit_books(self.database))
        await self.suspend_writer()

    async def writer(self) -> int:
        """The process that flushes asynchronous commits now and then, while it waits; 0 while it does anything."""
        return await self.database.fetchval(_WRITER) or 0

    async def suspend_writer(self) -> None:
        """Have nothing flushed by itself; whoever was suspended in the middle of a flush would hold up all others."""
        while True:
            if pid := await self.writer():
                os.kill(pid, signal.SIGSTOP)
                while state_of(pid) != "T":  # noqa: ASYNC110 -- the kernel does it
                    await anyio.sleep(0.01)
                if await self.writer() == pid:
                    return
                os.kill(pid, signal.SIGCONT)
            await anyio.sleep(0.01)


@asynccontextmanager
async def frail() -> AsyncIterator[Frail]:
    """Open one, with an account."""
    with fast_directory() as directory:
        async with embedded_postgres(directory, durable=True) as dsn:
            await migrate(dsn)
            async with open_ledger(dsn) as (database, ledger):
                account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
                opened = Frail(directory, database, ledger, account.account_id)
                await opened.suspend_writer()
                try:
                    yield opened
                finally:
                    os.kill(await opened.writer(), signal.SIGCONT)  # without which the server does not stop


async def test_only_what_is_on_record_outlives_a_crash() -> None:
    """An undone admission is noticed before its output could be stored; all others remain, and the books agree."""
    async with frail() as frail_one:
        ledger, account_id = frail_one.ledger, frail_one.account_id
        alone, asked, undone = (JobId(uuid7(START)) for _ in range(3))
        await ledger.admit(application(account_id, 1, alone))
        await frail_one.crash()
        await once_it_is_back(lambda: ledger.admit(application(account_id, 1, asked)))
        assert await ledger.is_durable(asked)
        await ledger.admit(application(account_id, 1, undone))
        await frail_one.crash()

        assert await ledger.is_durable(alone)
        assert not await once_it_is_back(lambda: ledger.is_durable(undone))
        assert (await ledger.balance(account_id)).used_conversions == 2
        for job_id, is_there in ((alone, True), (asked, True), (undone, False)):
            assert (await ledger.settle(settlement(job_id)) is not None) == is_there
        assert await audit_books(frail_one.database) == []


async def test_the_settlement_of_one_job_records_the_admissions_of_the_others() -> None:
    """None needs a check of its own, and no later crash undoes them."""
    async with frail() as frail_one:
        ledger, account_id = frail_one.ledger, frail_one.account_id
        first, *others = (JobId(uuid7(START)) for _ in range(5))
        for job_id in (first, *others):
            await ledger.admit(application(account_id, 1, job_id))
        assert await ledger.settle(settlement(first)) is not None
        await frail_one.crash()

        recovered = Ledger(frail_one.database, Pricing())
        assert [await recovered.is_durable(job_id) for job_id in others] == [True] * 4
        assert (await ledger.balance(account_id)).used_conversions == 5
        assert await audit_books(frail_one.database) == []


async def test_a_claim_records_the_admission_of_a_gateway() -> None:
    """Which waits for no flush of its own: until then, a crash undoes it, although no other job is open."""
    async with frail() as frail_one:
        database, account_id = frail_one.database, frail_one.account_id
        ledger = Ledger(database, Pricing(), hands_over=True)
        undone, claimed = (JobId(uuid7(START)) for _ in range(2))
        await ledger.admit(application(account_id, 1, undone))
        await frail_one.crash()
        assert not await once_it_is_back(lambda: ledger.is_durable(undone))

        gateway = ServerId(uuid7(START))
        await ledger.admit(msgspec.structs.replace(application(account_id, 1, claimed), server_id=gateway))
        worker = Leases(database, ServerId(uuid7(START)), LEASE)
        assert (await worker.claim(claimed, account_id, gateway, new_key())).verdict == "claimed"
        await frail_one.crash()
        claims = Ledger(database, Pricing(), worker=worker.server_id)
        assert await once_it_is_back(lambda: claims.is_durable(claimed, 2))
        assert await audit_books(database) == []


async def claimed_in_haste(frail_one: Frail, worker: Leases, *job_ids: JobId) -> Ledger:
    """The ledger of a worker that has just claimed these jobs, which a gateway has admitted for good."""
    gateway, account_id = ServerId(uuid7(START)), frail_one.account_id
    ledger = Ledger(frail_one.database, Pricing(), worker=worker.server_id)
    for job_id in job_ids:
        admission = application(account_id, 1, job_id, gateway)
        await ledger.admit(msgspec.structs.replace(admission, durable=True))
        ledger.forget(job_id)
    for job_id in job_ids:
        claim = await worker.claim(job_id, account_id, gateway, new_key(), durable=False)
        assert (claim.verdict, claim.attempt, claim.is_durable) == ("claimed", 2, False)
        ledger.note_claim(job_id, 2, is_durable=claim.is_durable)
    return ledger


async def test_a_claim_that_a_crash_undoes_is_noticed() -> None:
    """Also if another worker has made the same attempt since: its output has the same key."""
    async with frail() as frail_one:
        database, account_id, job_id = frail_one.database, frail_one.account_id, JobId(uuid7(START))
        first, second = (Leases(database, ServerId(uuid7(START)), LEASE) for _ in range(2))
        ledger = await claimed_in_haste(frail_one, first, job_id)
        await frail_one.crash()
        assert not await once_it_is_back(lambda: ledger.is_durable(job_id, 2))

        gateway = await database.fetchval("SELECT server_id FROM job WHERE id = $1", job_id)
        claim = await second.claim(job_id, account_id, gateway, new_key())
        assert (claim.verdict, claim.attempt, claim.is_durable) == ("claimed", 2, True)
        assert not await ledger.is_durable(job_id, 2)
        assert await Ledger(database, Pricing(), worker=second.server_id).is_durable(job_id, 2)


async def test_the_settlement_of_one_job_records_the_claims_of_the_others() -> None:
    """None needs a check of its own, and no later crash undoes them."""
    async with frail() as frail_one:
        worker = Leases(frail_one.database, ServerId(uuid7(START)), LEASE)
        first, *others = (JobId(uuid7(START)) for _ in range(5))
        ledger = await claimed_in_haste(frail_one, worker, first, *others)
        assert await ledger.settle(settlement(first, 2)) is not None
        await frail_one.crash()

        recovered = Ledger(frail_one.database, Pricing(), worker=worker.server_id)
        assert [await recovered.is_durable(job_id, 2) for job_id in others] == [True] * 4


async def test_a_job_that_a_hasty_claim_gives_up_stays_so() -> None:
    """Its client may have been told."""
    async with frail() as frail_one:
        database, account_id = frail_one.database, frail_one.account_id
        poison, gateway = JobId(uuid7(START)), ServerId(uuid7(START))
        await frail_one.ledger.admit(application(account_id, 1, poison, gateway))
        dies_of_it = "UPDATE job SET status = 'Processing', worker_id = $2, deaths = $3 WHERE id = $1"
        await database.execute(dies_of_it, poison, ServerId(uuid7(START)), MOST_DEATHS - 1)
        worker = Leases(database, ServerId(uuid7(START)), LEASE)
        assert (await worker.claim(poison, account_id, gateway, new_key(), durable=False)).verdict == "given up"
        await frail_one.crash()
        status = await once_it_is_back(lambda: database.fetchval("SELECT status FROM job WHERE id = $1", poison))
        assert status == "Failed"
