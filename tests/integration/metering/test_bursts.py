"""Admissions of many accounts at once, beside everything else that asks the database."""

import anyio
import asyncpg

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.ids import JobId, uuid7
from service.metering.ledger import Admission
from tests.integration.metering.test_interleavings import START, open_ledger
from tests.support.jobs import application

MANY = 12
"""More accounts than there are connections to the database."""


async def test_a_burst_of_admissions_leaves_connections_to_others(database_url: str) -> None:
    """While the admissions of many accounts wait in the database, a balance is still read; then all are admitted."""
    admitted: list[Admission] = []
    async with open_ledger(database_url) as (database, ledger):
        administration = Administration(database, utc_now)
        terms = Terms(plan="free")
        accounts = [(await administration.create_account(f"a {n}", terms))[0].account_id for n in range(MANY)]

        async def admit(number: int) -> None:
            job_id = JobId(uuid7(START))
            admitted.append(await ledger.admit(application(accounts[number], 1, job_id)))

        blocker = await asyncpg.connect(database_url)
        try:
            async with anyio.create_task_group() as tasks, blocker.transaction():
                await blocker.execute("LOCK TABLE job IN EXCLUSIVE MODE")
                for number in range(MANY):
                    tasks.start_soon(admit, number)
                await anyio.wait_all_tasks_blocked()
                assert (await ledger.balance(accounts[0])).used_conversions == 0
        finally:
            await blocker.close()
    assert len(admitted) == MANY
