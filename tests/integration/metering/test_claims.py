"""Who holds an idempotency key, and that an overtaken holder can no longer do anything."""

import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import anyio
import msgspec
import pytest

from service.accounts.administration import Administration, Terms
from service.accounts.idempotency import IdempotencyKeys, KeyClaim
from service.clock import DatabaseClock, utc_now
from service.db.pool import Database
from service.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from service.ids import AccountId, JobId, ServerId, uuid7
from service.jobs.leases import Leases
from service.jobs.lifecycle import Status
from service.jobs.records import Job
from service.jobs.register import JobRegister
from service.metering.audit import audit_books
from service.metering.ledger import Ledger, Release
from tests.integration.metering.test_interleavings import START, open_ledger
from tests.support.database_time import stop_time
from tests.support.jobs import application, settlement
from tests.support.patience import PATIENCE_SECONDS

LEASE = timedelta(seconds=30)


class Here(NamedTuple):
    """A live server, another server's keys, and an account."""

    database: Database
    ledger: Ledger
    account_id: AccountId
    leases: Leases
    keys: IdempotencyKeys
    others: IdempotencyKeys
    times: list[datetime]
    """What the servers have heard of the database's clock, the latest last."""

    def claim(self, files: int = 1, fingerprint: bytes = b"f") -> KeyClaim:
        """A request that claims the key."""
        jobs = tuple(JobId(uuid7(START)) for _ in range(files))
        return KeyClaim(account_id=self.account_id, key="k", fingerprint=fingerprint, job_ids=jobs)

    async def admit(self, job_id: JobId) -> None:
        """Admit a file under the key."""
        file = application(self.account_id, 1, job_id)
        await self.ledger.admit(msgspec.structs.replace(file, key="k", server_id=self.leases.server_id))

    async def interrupt(self, job_id: JobId) -> None:
        """Fail a job so that a repeat converts its file."""
        await self.ledger.release(Release(job_id=job_id, attempt=1, error_message="no", interrupted=True))

    async def pass_time(self, by: timedelta) -> None:
        """Advance time from the start, which both servers hear."""
        await stop_time(self.database, START + by)
        self.times.append(START + by)


@pytest.fixture
async def here(database_url: str) -> AsyncIterator[Here]:
    """Create one."""
    async with _here(database_url) as made:
        yield made


@asynccontextmanager
async def _here(dsn: str) -> AsyncIterator[Here]:
    async with open_ledger(dsn) as (database, ledger):
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        leases = Leases(database, ServerId(uuid7(START)), LEASE)
        await leases.beat()
        times = [START]
        keys = [IdempotencyKeys(database, LEASE, DatabaseClock(lambda: times[-1])) for _ in range(2)]
        yield Here(database, ledger, account.account_id, leases, keys[0], keys[1], times)
        assert await audit_books(database) == []


async def test_a_claim_that_was_taken_over_admits_nothing(here: Here) -> None:
    """It can neither reserve nor refuse, and giving the claim back has no effect."""
    first, second = here.claim(), here.claim()
    held = await here.keys.claim(first)
    await here.pass_time(LEASE)
    assert (await here.others.claim(second)).job_ids == second.job_ids
    with pytest.raises(IdempotencyKeyInUse):
        await here.admit(first.job_ids[0])
    refused = Job(
        id=first.job_ids[0],
        status=Status.FAILED,
        original_file_name="a",
        input_format=None,
        output_format=None,
        input_size_bytes=1,
        created_at=START,
        error_message="no",
    )
    assert await JobRegister(here.database).insert_failed(refused, here.account_id, key="k") is None
    await here.keys.prolong()
    await here.keys.give_back(held)
    with pytest.raises(IdempotencyKeyInUse):
        await here.keys.claim(here.claim())
    await here.admit(second.job_ids[0])
    assert (await here.ledger.balance(here.account_id)).used_conversions == 1


async def test_a_claim_ends_with_its_lease_unless_it_is_prolonged(here: Here) -> None:
    """A live process without its database loses it; one that renews it keeps it for as long as needed."""
    first = await here.keys.claim(here.claim())
    for seconds in range(25, 200, 25):
        await here.pass_time(timedelta(seconds=seconds))
        await here.keys.prolong()
        with pytest.raises(IdempotencyKeyInUse):
            await here.others.claim(here.claim())
    here.keys.let_go(first)
    await here.keys.prolong()  # of nothing any more
    await here.pass_time(timedelta(minutes=6))
    assert not (await here.others.claim(here.claim())).earlier


async def test_what_the_service_has_interrupted_is_done_at_once_by_a_repeat(here: Here) -> None:
    """Nobody is at it any more once all of its jobs have ended; until then a batch may still admit the others."""
    first, second = here.claim(files=2), here.claim(files=2)
    await here.keys.claim(first)
    for job_id in first.job_ids:
        with pytest.raises(IdempotencyKeyInUse):
            await here.others.claim(here.claim(files=2))
        await here.admit(job_id)
        with pytest.raises(IdempotencyKeyInUse):
            await here.others.claim(here.claim(files=2))
        assert await here.ledger.release(Release(job_id=job_id, attempt=1, error_message="no", interrupted=True))
    assert (await here.others.claim(second)).job_ids == second.job_ids
    with pytest.raises(IdempotencyKeyInUse):
        await here.keys.claim(here.claim(files=2))


async def test_another_request_never_gets_the_key(here: Here) -> None:
    """Not while the first one runs or after it was interrupted, unless it gave the key back, or a day has ended it."""
    held = await here.keys.claim(here.claim())
    with pytest.raises(IdempotencyKeyReused):
        await here.others.claim(here.claim(fingerprint=b"g"))
    await here.pass_time(2 * LEASE)
    with pytest.raises(IdempotencyKeyReused):
        await here.others.claim(here.claim(fingerprint=b"g"))
    await here.keys.give_back(held)
    assert not (await here.others.claim(here.claim(fingerprint=b"g"))).earlier
    await here.pass_time(timedelta(hours=24) + 2 * LEASE)
    with pytest.raises(IdempotencyKeyReused):
        await here.keys.claim(here.claim(fingerprint=b"h"))
    await here.keys.forget_old()
    assert not (await here.keys.claim(here.claim(fingerprint=b"h"))).earlier


async def test_what_a_silent_process_had_open_is_released_and_done_anew(here: Here) -> None:
    """A repeat waits while the process lives; then its job fails with the key and can no longer settle."""
    first, second = here.claim(), here.claim()
    here.keys.let_go(await here.keys.claim(first))
    await here.admit(first.job_ids[0])
    await here.pass_time(LEASE)
    await here.leases.beat()
    await here.pass_time(2 * LEASE)
    with pytest.raises(IdempotencyKeyInUse):
        await here.others.claim(here.claim())
    await here.pass_time(2 * LEASE + timedelta(seconds=1))
    assert (await here.others.claim(second)).job_ids == second.job_ids
    assert (await here.ledger.balance(here.account_id)).used_conversions == 0
    assert await here.ledger.settle(settlement(first.job_ids[0])) is None
    await here.admit(second.job_ids[0])
    assert await here.ledger.settle(settlement(second.job_ids[0])) is not None
    assert (await here.keys.claim(here.claim())).is_answered


async def test_a_batch_that_broke_off_is_left_to_its_repeat(here: Here) -> None:
    """Charges and refusals remain; what was interrupted, never admitted, or undone remains to be done."""
    first, second = here.claim(4), here.claim(4)
    held = await here.keys.claim(first)
    charged, failed, interrupted, _ = first.job_ids
    for job_id in (charged, failed, interrupted):
        await here.admit(job_id)
    await here.ledger.settle(settlement(charged))
    release = Release(job_id=failed, attempt=1, error_message="no", details={})
    await here.ledger.release(release)
    await here.ledger.release(msgspec.structs.replace(release, job_id=interrupted, interrupted=True))
    await here.keys.give_back(held)
    taken = await here.others.claim(second)
    assert taken.job_ids == (charged, failed, *second.job_ids[2:])
    assert taken.earlier == {charged, failed}
    with pytest.raises(IdempotencyKeyInUse):
        await here.admit(first.job_ids[3])


@pytest.mark.parametrize("seed", range(4))
async def test_however_requests_with_one_key_interleave_its_files_are_charged_once(here: Here, seed: int) -> None:
    """Requests break off or lose the key while they admit a file, jobs are interrupted, and repeats come at once."""
    choose = random.Random(seed)
    keys = IdempotencyKeys(here.database, timedelta(), DatabaseClock(lambda: START))  # claims end as they begin
    active = set[JobId]()

    async def convert(job_id: JobId) -> None:
        await here.admit(job_id)
        await anyio.sleep(choose.random() / 100)
        if choose.random() < 0.5:
            await here.interrupt(job_id)
        else:
            await here.ledger.settle(settlement(job_id))

    async def repeat() -> None:
        is_answered = False
        while not is_answered:
            claim, may_take = here.claim(files=2), choose.choice([0.003, 0.01, PATIENCE_SECONDS])
            active.update(claim.job_ids)
            with suppress(IdempotencyKeyInUse):
                is_answered = await _request(keys, claim, convert, may_take)
            active.difference_update(claim.job_ids)
            for row in await here.database.fetch("SELECT id FROM job WHERE completed_at IS NULL"):
                if row["id"] not in active:  # as of a process that no longer knows it
                    await here.interrupt(row["id"])

    async with anyio.create_task_group() as clients:
        for _ in range(6):
            clients.start_soon(repeat)
    answer = await here.keys.claim(here.claim(files=2))
    assert answer.is_answered
    completed = await here.database.fetch("SELECT id FROM job WHERE status = 'Completed'")
    assert sorted(row["id"] for row in completed) == sorted(answer.job_ids)
    assert (await here.ledger.balance(here.account_id)).used_conversions == 2


async def _request(
    keys: IdempotencyKeys, claim: KeyClaim, convert: Callable[[JobId], Coroutine[Any, Any, None]], may_take: float
) -> bool:
    """Convert what earlier requests with the key have left; give the key back if that takes longer than it may.

    Returns whether earlier requests have left nothing. What breaks off may have been charged all the same.
    """
    held = await keys.claim(claim)
    if held.is_answered:
        return True
    try:
        with anyio.fail_after(may_take):
            async with anyio.create_task_group() as files:
                for job_id in held.job_ids:
                    if job_id not in held.earlier:
                        files.start_soon(convert, job_id)
    except* (IdempotencyKeyInUse, TimeoutError):
        await keys.give_back(held)
    else:
        keys.let_go(held)
    return False


async def test_a_job_is_released_in_its_own_attempt_alone(here: Here) -> None:
    """Another attempt changes nothing, and a job that is read knows its attempt."""
    claim = here.claim()
    await here.keys.claim(claim)
    [job_id] = claim.job_ids
    await here.admit(job_id)
    async with here.database.connection() as connection:
        await connection.execute("UPDATE job SET attempt = 2 WHERE id = $1", job_id)
    register = JobRegister(here.database)
    assert await here.ledger.release(Release(job_id=job_id, attempt=1, error_message="no", details={})) is None
    assert await here.ledger.settle(settlement(job_id)) is None
    found = [
        await register.find(job_id, here.account_id),
        *await register.find_all([job_id], here.account_id),
        *await register.recent(here.account_id, 1),
    ]
    assert [(job.attempt, job.status) for job in found] == [(2, Status.PENDING)] * 3
    assert await here.ledger.settle(settlement(job_id, attempt=2)) is not None


async def test_hosts_with_wrong_clocks_agree_on_who_is_silent(here: Here) -> None:
    """The database alone judges leases; no host's clock matters."""
    other = Leases(here.database, ServerId(uuid7(START)), LEASE)
    claim = here.claim()
    await here.keys.claim(claim)
    await here.admit(claim.job_ids[0])
    await here.pass_time(LEASE)
    assert await other.abandoned() == []
    await here.pass_time(LEASE + timedelta(seconds=1))
    [job] = await other.abandoned()
    assert await here.ledger.release(Release(job_id=job.id, attempt=job.attempt, error_message="gone"))
    found = await JobRegister(here.database).find(claim.job_ids[0], here.account_id)
    assert (found.status, found.completed_at) == (Status.FAILED, START + LEASE + timedelta(seconds=1))
