"""Jobs are shown as Processing once they have had a converter for a while, and only while they are open."""

import asyncio
from datetime import timedelta
from uuid import uuid4

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.ids import JobId, ServerId, uuid7
from service.jobs.leases import Leases
from service.jobs.lifecycle import Situation, Stage, Status
from service.jobs.register import JobRegister
from service.storage.port import new_key
from tests.integration.metering.test_interleavings import START, open_ledger
from tests.support.jobs import application, settlement


async def test_what_has_its_converter_for_a_while_is_shown(database_url: str) -> None:
    """Waiting jobs and jobs that end between two updates are not shown, and an end is never undone."""
    async with open_ledger(database_url) as (database, ledger):
        jobs = JobRegister(database)
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        waits, short, long, ended = (JobId(uuid7(START)) for _ in range(4))
        for job_id in (waits, short, long, ended):
            await ledger.admit(application(account.account_id, 1, job_id))

        situations = [Situation("reading")]

        async def situation_of(job_id: JobId) -> tuple[Stage | None, float | None]:
            job = await jobs.find(job_id, account.account_id)
            return job.stage, job.stage_share

        async def status_of(job_id: JobId) -> Status:
            return (await jobs.find(job_id, account.account_id)).status

        for job_id in (short, long, ended):
            jobs.begin(await jobs.find(job_id, account.account_id), lambda: situations[-1])
        await jobs.show_begun()
        assert {await status_of(job_id) for job_id in (waits, short, long, ended)} == {Status.PENDING}
        jobs.end(short)
        assert await ledger.settle(settlement(ended)) is not None
        await jobs.show_begun()
        shown = [await status_of(job_id) for job_id in (waits, short, long, ended)]
        assert shown == [Status.PENDING, Status.PENDING, Status.PROCESSING, Status.COMPLETED]
        assert (await situation_of(waits), await situation_of(long)) == ((None, None), ("reading", None))
        for done, told in ((0.0, 0.0), (0.49, 0.45), (1.0, 1.0), (None, None)):
            situations.append(Situation("verifying", done))
            await jobs.show_begun()
            assert await situation_of(long) == ("verifying", told)
        assert await ledger.settle(settlement(long)) is not None
        await jobs.show_begun()
        assert await status_of(long) is Status.COMPLETED


async def test_nothing_is_shown_until_a_converter_begins(database_url: str) -> None:
    """Whoever shows it waits, again once no job is left."""
    async with open_ledger(database_url) as (database, ledger):
        jobs = JobRegister(database)
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        for _ in range(2):
            file = application(account.account_id, 1)
            await ledger.admit(file)
            job = await jobs.find(file.job_id, account.account_id)
            waiting = asyncio.create_task(jobs.any_begun())
            await asyncio.sleep(0)
            assert not waiting.done()
            jobs.begin(job, lambda: Situation("reading"))
            await waiting
            await jobs.any_begun()
            jobs.end(job.id)


async def test_a_process_that_lost_a_job_does_not_show_what_it_does(database_url: str) -> None:
    """The worker that has it now has not started it, so the file is not to blame if that worker dies."""
    async with open_ledger(database_url) as (database, ledger):
        jobs = JobRegister(database)
        account, _ = await Administration(database, utc_now).create_account("a", Terms(plan="free"))
        file = application(account.account_id, 1)
        job_id = file.job_id
        await ledger.admit(file)
        workers = [Leases(database, ServerId(uuid4()), timedelta(seconds=30)) for _ in range(3)]
        await workers[0].claim(job_id, file.account_id, file.server_id, new_key())
        jobs.begin(await jobs.find(job_id, account.account_id), lambda: Situation("reading"))
        await jobs.show_begun()
        await workers[1].claim(job_id, file.account_id, file.server_id, new_key())
        await jobs.show_begun()
        job = await jobs.find(job_id, account.account_id)
        assert (job.attempt, job.status, job.stage) == (3, Status.PENDING, None)
