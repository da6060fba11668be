"""A file whose workers die is given up; a file that only waited on them is not."""

from datetime import timedelta
from uuid import uuid4

import anyio
import pytest

from service.clock import utc_now
from service.ids import AccountId, JobId, ServerId, uuid7
from service.jobs.leases import MOST_DEATHS, POISON, Claim, Leases
from service.jobs.lifecycle import Status
from service.jobs.seals import Proof, seal_of
from service.metering.ledger import Release
from service.storage.port import new_key
from tests.support.jobs import application
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the shared service

LEASE = timedelta(seconds=30)


async def admitted(here: World) -> JobId:
    """A job with a reservation, of a live gateway."""
    job_id = JobId(uuid7(utc_now()))
    await here.services.ledger.admit(
        application(here.account.account_id, job_id=job_id, server_id=here.services.leases.server_id)
    )
    return job_id


async def claim_as(worker: Leases, here: World, job_id: JobId) -> Claim:
    """Let a worker claim the job with its handover."""
    return await worker.claim(job_id, here.account.account_id, here.services.leases.server_id, new_key())


async def claim(here: World, job_id: JobId, *, begins: bool) -> Claim:
    """Let a worker claim the job, optionally start it, and die: it sends no heartbeat."""
    worker = Leases(here.services.database, ServerId(uuid4()), LEASE)
    claimed = await claim_as(worker, here, job_id)
    if begins and claimed.attempt is not None:
        await record_begin(here, job_id, claimed)
    return claimed


async def record_begin(here: World, job_id: JobId, claimed: Claim) -> None:
    """Let the converter of a claimed job begin."""
    job = await here.services.jobs.find(job_id, here.account.account_id)
    assert job.attempt == claimed.attempt
    assert await here.services.jobs.record_begin(job)


async def test_a_file_that_ends_its_workers_is_given_up(here: World) -> None:
    """It runs alone after the second death; the reservation is returned, and a repeat gets the same response."""
    job_id = await admitted(here)
    claims = [await claim(here, job_id, begins=True) for _ in range(MOST_DEATHS + 2)]
    assert [one.verdict for one in claims] == ["claimed"] * MOST_DEATHS + ["given up", "ended"]
    assert [one.is_suspect for one in claims[:MOST_DEATHS]] == [False] * (MOST_DEATHS - 1) + [True]
    assert [one.is_doubtful for one in claims[:MOST_DEATHS]] == [False] + [True] * (MOST_DEATHS - 1)
    assert len({one.output for one in claims[:MOST_DEATHS]}) == MOST_DEATHS
    job = await here.services.jobs.find(job_id, here.account.account_id)
    assert (job.status, job.error_message) == (Status.FAILED, POISON)
    assert await here.services.ledger.reservations() == 0


async def test_a_file_that_only_waited_is_not_blamed(here: World) -> None:
    """However many workers die with it."""
    job_id = await admitted(here)
    claims = [await claim(here, job_id, begins=False) for _ in range(MOST_DEATHS + 3)]
    assert {one.verdict for one in claims} == {"claimed"}
    assert not any(one.is_suspect for one in claims)
    assert [one.attempt for one in claims] == list(range(2, MOST_DEATHS + 5))


@pytest.mark.parametrize("begins", [False, True])
async def test_a_worker_that_lives_keeps_its_job(here: World, *, begins: bool) -> None:
    """And one that gives a job back does not count as dead."""
    job_id = await admitted(here)
    worker = Leases(here.services.database, ServerId(uuid4()), LEASE)
    await worker.beat()
    for _ in range(MOST_DEATHS + 1):
        claimed = await claim_as(worker, here, job_id)
        assert (claimed.verdict, claimed.is_suspect) == ("claimed", False)
        assert (await claim(here, job_id, begins=True)).verdict == "held"
        assert claimed.attempt is not None
        if begins:
            await record_begin(here, job_id, claimed)
        assert await worker.give_back(job_id, claimed.attempt)


async def test_an_attempt_that_has_lost_does_not_begin(here: World) -> None:
    """Because a later one has the job, or because it has ended."""
    services, job_id = here.services, await admitted(here)
    attempts = []
    for _ in range(2):
        await claim(here, job_id, begins=False)
        attempts.append(await services.jobs.find(job_id, here.account.account_id))
    assert [await services.jobs.is_open(one) for one in attempts] == [False, True]
    assert [await services.jobs.record_begin(one) for one in attempts] == [False, True]
    release = Release(job_id=job_id, attempt=attempts[-1].attempt, error_message="no", details={})
    assert await services.ledger.release(release) is not None
    assert not await services.jobs.is_open(attempts[-1])
    assert not await services.jobs.record_begin(attempts[-1])


async def test_a_forged_handover_takes_nothing(here: World) -> None:
    """Neither for another account, whose limits and retention would apply, nor without the job's seal."""
    job_id, worker = await admitted(here), Leases(here.services.database, ServerId(uuid4()), LEASE)
    account_id, gateway = here.account.account_id, here.services.leases.server_id
    assert (await worker.claim(job_id, AccountId(uuid4()), gateway, new_key())).verdict == "ended"
    assert (await worker.claim(job_id, account_id, ServerId(uuid4()), new_key())).verdict == "ended"
    secret = (await here.services.jobs.find(job_id, account_id)).object_key
    assert secret is not None
    for attempt in range(2, 5):  # the first of which stores by the key that is the secret
        for wrong in (b"", seal_of(bytes(32), "another"), seal_of(bytes(range(32)), secret)):
            proof = Proof(bytes(32), wrong)
            assert (await worker.claim(job_id, account_id, gateway, new_key(), proof)).verdict == "forged"
        proof = Proof(bytes(32), seal_of(bytes(32), secret))
        claimed = await worker.claim(job_id, account_id, gateway, new_key(), proof)
        assert (claimed.verdict, claimed.attempt, claimed.secret) == ("claimed", attempt, secret)


async def test_claims_are_judged_one_by_one(here: World) -> None:
    """However many are made in one statement: of a poisonous file, of one that has ended, and twice of one job."""
    poison, cancelled, *good = [await admitted(here) for _ in range(8)]
    for _ in range(MOST_DEATHS):
        await claim(here, poison, begins=True)
    await here.services.ledger.release(Release(job_id=cancelled, attempt=1, error_message="cancelled", details={}))
    worker, claims = Leases(here.services.database, ServerId(uuid4()), LEASE), dict[int, Claim]()
    await worker.beat()

    async def claim_one(number: int, job_id: JobId) -> None:
        claims[number] = await claim_as(worker, here, job_id)

    async with anyio.create_task_group() as tasks:
        for number, job_id in enumerate([good[0], poison, cancelled, *good]):
            tasks.start_soon(claim_one, number, job_id)
    verdicts = [claims[number].verdict for number in range(len(claims))]
    assert verdicts == ["claimed", "given up", "ended", "held"] + ["claimed"] * (len(good) - 1)
    assert len({one.output for one in claims.values()} - {None}) == len(good)
    assert await here.services.ledger.reservations() == len(good)
