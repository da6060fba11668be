"""Hosts whose clocks are wrong, and a database whose clock jumps."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import anyio
import httpx
import msgspec
import pytest
from structlog.testing import capture_logs

from service.accounts.administration import Administration, Terms
from service.accounts.idempotency import IdempotencyKeys, KeyClaim
from service.app.applications import application_for
from service.app.services import open_services
from service.clock import DatabaseClock, utc_now
from service.errors import IdempotencyKeyInUse
from service.ids import JobId, ServerId, uuid7
from service.jobs.leases import Leases
from service.metering.audit import audit_books
from service.metering.ledger import Release
from service.settings import Settings
from service.telemetry import events
from service.usecases.maintenance import PERIODIC_TASKS, PeriodicTask, forget, prune, recover, run_periodically, sweep
from service.usecases.services import Services
from tests.support.data import lakes
from tests.support.database_time import stopping_time
from tests.support.jobs import application, settlement
from tests.support.locks import until_one_waits
from tests.support.patience import PATIENCE_SECONDS
from tests.support.world import ORIGIN, World, world

LEASE = timedelta(seconds=30)


class Jumping:
    """A service whose database's clock jumps, and another process that has admitted a job."""

    def __init__(self, here: World) -> None:
        self.here = here
        self.other = Leases(here.services.database, ServerId(uuid4()), LEASE)
        self._off = timedelta()

    async def admit(self) -> JobId:
        """Let the other process, which is alive, admit a job."""
        await self.other.beat()
        job_id = JobId(uuid7(self.here.clock.now))
        await self.here.services.ledger.admit(
            application(self.here.account.account_id, job_id=job_id, server_id=self.other.server_id)
        )
        return job_id

    async def jump(self, by: timedelta) -> None:
        """Let the database's clock jump."""
        self._off += by
        await self.pass_time(timedelta())

    async def pass_time(self, by: timedelta) -> None:
        """Let time pass for all."""
        now = self.here.clock.now + by
        async with stopping_time(self.here.services.database, now + self._off):
            self.here.clock.now = now

    async def reservations(self) -> int:
        """How many jobs are open, once those that nobody works on have been ended."""
        await recover(self.here.services)
        return await self.here.services.ledger.reservations()


def _often(work: Callable[[Services], Awaitable[None]]) -> PeriodicTask:
    """A task of maintenance that is done again at once."""
    [task] = [task for task in PERIODIC_TASKS if task.work is work]
    return msgspec.structs.replace(task, every=lambda _services: timedelta(milliseconds=10))


@pytest.mark.parametrize("off", [timedelta(days=2), timedelta(days=-2)])
async def test_a_result_can_be_fetched_whatever_the_clock_of_the_host_shows(
    database_url: str, tmp_path: Path, off: timedelta
) -> None:
    """Until the retention that the database counts is over."""
    settings = Settings(data_dir=str(tmp_path), database_url=database_url)
    async with open_services(settings, DatabaseClock(host=lambda: utc_now() + off)) as services:
        application = application_for(services, settings)
        terms = Terms(plan="free")
        _, key = await Administration(services.database, utc_now).create_account("a", terms)
        transport, headers = httpx.ASGITransport(application), {"X-API-Key": key.api_key}
        async with (
            application.lifespan(),
            httpx.AsyncClient(transport=transport, base_url="http://geomill.test", headers=headers) as client,
        ):
            files = {"file": ("a.geojson", lakes())}
            result = (await client.post("/api/geo/convert/file", files=files)).json()
            assert result["success"], result
            assert (await client.get(result["downloadUrl"])).status_code == 200
            left = datetime.fromisoformat(result["downloadExpiresAt"]) - utc_now()
            assert timedelta(hours=3, minutes=50) < left <= timedelta(hours=4)


async def test_a_clock_that_jumps_forward_ends_no_job_of_a_living_process(database_url: str, tmp_path: Path) -> None:
    """All seem to be silent then; a lease later, whoever is has really ended."""
    async with world(database_url, tmp_path) as here:
        jumping = Jumping(here)
        await jumping.pass_time(LEASE)
        await jumping.admit()
        assert await jumping.reservations() == 1
        await jumping.jump(timedelta(hours=1))
        assert await jumping.reservations() == 1
        await jumping.pass_time(LEASE)
        await jumping.other.beat()
        assert await jumping.reservations() == 1
        await jumping.pass_time(2 * LEASE)
        assert await jumping.reservations() == 0


async def test_a_clock_that_jumps_while_dead_processes_are_looked_for_ends_no_job_of_a_living_one(
    database_url: str, tmp_path: Path
) -> None:
    """Whoever is dead is looked for after the heartbeat that would have noticed."""
    async with world(database_url, tmp_path) as here:
        jumping, database = Jumping(here), here.services.database
        await jumping.pass_time(LEASE)
        await jumping.admit()
        async with anyio.create_task_group() as tasks, database.transaction() as holding:
            await holding.execute("LOCK TABLE job IN ACCESS EXCLUSIVE MODE")
            tasks.start_soon(recover, here.services)
            await until_one_waits(holding)
            await jumping.jump(timedelta(hours=1))
        assert await here.services.ledger.reservations() == 1


async def test_a_result_outlives_a_jump_of_the_only_clock(database_url: str, tmp_path: Path) -> None:
    """On a single host, host and database agree; the result is removed once its retention has passed."""
    async with world(database_url, tmp_path) as here:
        jumping = Jumping(here)
        answer = await here.client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())})

        async def status() -> int:
            await recover(here.services)  # hears the time
            await sweep(here.services)
            response = await here.client.get(answer.json()["downloadUrl"])
            return response.status_code

        here.clock.host = lambda: here.clock.now + timedelta(days=2)
        await jumping.jump(timedelta(days=2))
        await status()
        here.clock.host = lambda: here.clock.now
        await jumping.jump(timedelta(days=-2))
        assert await status() == 200
        await jumping.pass_time(timedelta(days=1))
        assert await status() == 410


async def test_a_clock_that_is_set_back_leaves_no_lease_of_a_dead_process(database_url: str, tmp_path: Path) -> None:
    """Its job, its claims and its tasks are free again after two leases, not when the clock is back where it was."""
    async with world(database_url, tmp_path) as here:
        jumping, database = Jumping(here), here.services.database
        keys, account_id = IdempotencyKeys(database, LEASE, here.clock), here.account.account_id
        claims = [
            KeyClaim(account_id=account_id, key="k", fingerprint=b"f", job_ids=(JobId(uuid7(utc_now())),))
            for _ in range(3)
        ]
        await jumping.admit()
        await keys.claim(claims[0])
        assert await jumping.other.lead("usage of a test")
        await jumping.jump(timedelta(days=-1))
        with pytest.raises(IdempotencyKeyInUse):
            await keys.claim(claims[1])
        for _ in range(2):
            assert await jumping.reservations() == 1
            await jumping.pass_time(LEASE + timedelta(seconds=1))
        assert await jumping.reservations() == 0
        assert (await keys.claim(claims[2])).job_ids == claims[2].job_ids
        assert await here.services.leases.lead("usage of a test")


@pytest.mark.parametrize("host_too", [False, True])
async def test_a_repeated_request_is_charged_once_wherever_the_clock_jumps(
    database_url: str, tmp_path: Path, *, host_too: bool
) -> None:
    """Two days ahead, its key is not old. It is deleted once a day has passed."""
    async with world(database_url, tmp_path) as here:
        jumping, ledger = Jumping(here), here.services.ledger

        async def job() -> str:
            files, headers = {"file": ("a.geojson", lakes())}, {"Idempotency-Key": "k"}
            answer = await here.client.post("/api/geo/convert/upload", files=files, headers=headers)
            return str(answer.json()["jobId"])

        first = await job()
        if host_too:
            here.clock.host = lambda: here.clock.now + timedelta(days=2)
        await jumping.jump(timedelta(days=2))
        for _ in range(2):
            assert await job() == first
            await forget(here.services)
            await recover(here.services)  # hears the time
        assert (await ledger.balance(here.account.account_id)).used_conversions == 1
        await jumping.pass_time(timedelta(hours=24))
        assert await job() == first
        await forget(here.services)
        assert await job() != first


@pytest.mark.parametrize("is_renewed", [False, True])
async def test_a_request_while_the_clock_is_behind_is_charged_once(
    database_url: str, tmp_path: Path, *, is_renewed: bool
) -> None:
    """For a moment that no process notices, as after the host of the database was resumed; also if the key was old."""
    async with world(database_url, tmp_path) as here:
        jumping = Jumping(here)
        await recover(here.services)  # hears the time

        async def job() -> str:
            files, headers = {"file": ("a.geojson", lakes())}, {"Idempotency-Key": "k"}
            answer = await here.client.post("/api/geo/convert/upload", files=files, headers=headers)
            return str(answer.json()["jobId"])

        if is_renewed:
            await job()
            await jumping.pass_time(timedelta(days=4))
            await recover(here.services)
            await forget(here.services)
        await jumping.jump(timedelta(days=-2))
        first = await job()
        await jumping.jump(timedelta(days=2))
        await forget(here.services)
        assert await job() == first
        assert await here.services.database.fetchval("SELECT count(*) FROM ledger") == 1 + is_renewed


@pytest.mark.parametrize("jump", [timedelta(days=-31), timedelta(days=-2), timedelta(days=2), timedelta(days=40)])
async def test_processes_that_have_heard_different_times_charge_a_repeat_once(
    database_url: str, tmp_path: Path, jump: timedelta
) -> None:
    """The clock jumps for a moment that only one of two processes hears; either gets the repeats."""
    async with world(database_url, tmp_path) as here, world(database_url, tmp_path) as other:
        jumping = Jumping(here)
        transport, headers = httpx.ASGITransport(other.application), dict(here.client.headers)
        async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers) as at_other:

            async def job(client: httpx.AsyncClient, key: str) -> str:
                files, sent = {"file": ("a.geojson", lakes())}, {"Idempotency-Key": key}
                answer = await client.post("/api/geo/convert/upload", files=files, headers=sent)
                return str(answer.json()["jobId"])

            async def is_charged_once(jobs: dict[str, str]) -> bool:
                for client in (here.client, at_other):
                    for process in (here, other):
                        await forget(process.services)
                    assert {key: await job(client, key) for key in jobs} == jobs
                return int(await here.services.database.fetchval("SELECT count(*) FROM ledger")) == len(jobs)

            await here.services.leases.beat()
            jobs = {"before": await job(here.client, "before")}
            await jumping.jump(jump)
            await other.services.leases.beat()
            jobs |= {"heard": await job(at_other, "heard"), "unheard": await job(here.client, "unheard")}
            assert await is_charged_once(jobs)
            await jumping.jump(-jump)
            assert await is_charged_once(jobs)
            await other.services.leases.beat()
            assert await is_charged_once(jobs)


@pytest.mark.parametrize("is_heard", [False, True])
async def test_a_result_of_a_moment_in_which_the_clock_is_behind_is_kept(
    database_url: str, tmp_path: Path, *, is_heard: bool
) -> None:
    """It is charged, so its client can fetch it for as long as any other."""
    async with world(database_url, tmp_path) as here:
        jumping = Jumping(here)
        await recover(here.services)  # hears the time
        await jumping.jump(timedelta(days=-2))
        if is_heard:
            await here.services.leases.beat()
        answer = await here.client.post("/api/geo/convert/upload", files={"file": ("a.geojson", lakes())})
        await jumping.jump(timedelta(days=2))
        await sweep(here.services)
        job = f"/api/geo/convert/jobs/{answer.json()['jobId']}"
        assert (await here.client.get(f"{job}/status")).json()["status"] == "Completed"
        link = (await here.client.get(f"{job}/result")).json()["downloadUrl"]
        assert (await here.client.get(link)).is_success


async def test_a_job_is_not_pruned_while_a_repeat_is_answered_from_it(database_url: str, tmp_path: Path) -> None:
    """However far the only clock of a host jumps: without the job, the repeat would be charged again."""
    async with world(database_url, tmp_path) as here:
        jumping, services = Jumping(here), here.services

        async def job() -> str:
            files, headers = {"file": ("a.geojson", lakes())}, {"Idempotency-Key": "k"}
            answer = await here.client.post("/api/geo/convert/upload", files=files, headers=headers)
            return str(answer.json()["jobId"])

        first = await job()
        here.clock.host = lambda: here.clock.now + timedelta(days=1000)
        await jumping.jump(timedelta(days=1000))
        for task in (recover, sweep, prune, forget):
            await task(services)
        assert await job() == first
        await jumping.pass_time(timedelta(days=91))
        for task in (sweep, prune):
            await task(services)
        assert (await here.client.get(f"/api/geo/convert/jobs/{first}/status")).status_code == 404


@pytest.mark.parametrize("jump", [timedelta(days=31), timedelta(days=-31)])
async def test_a_reservation_stays_in_its_month_wherever_the_clock_jumps(
    database_url: str, tmp_path: Path, jump: timedelta
) -> None:
    """It is charged to that month, or returned to it, once."""
    async with world(database_url, tmp_path) as here:
        jumping, ledger = Jumping(here), here.services.ledger
        settled, released = await jumping.admit(), await jumping.admit()
        await jumping.jump(jump)
        release = Release(job_id=released, attempt=1, error_message="no", details={})
        assert await ledger.settle(settlement(settled)) is not None
        assert await ledger.release(release) is not None
        await jumping.jump(-jump / 2)
        assert await ledger.settle(settlement(settled)) is None
        assert await ledger.release(release) is None
        assert await audit_books(here.services.database) == []
        await jumping.jump(-jump / 2)
        balance = await ledger.balance(here.account.account_id)
        assert (balance.used_conversions, balance.used_bytes) == (1, 2)


async def test_a_jump_of_the_only_clock_of_a_host_deletes_no_result(database_url: str, tmp_path: Path) -> None:
    """It may be set right again, and the clocks of host and database agree: what is old is deleted an hour later."""
    often = _often(sweep)
    async with world(database_url, tmp_path) as here:
        jumping = Jumping(here)
        link = (await here.convert())["downloadUrl"]
        here.clock.host = lambda: here.clock.now + timedelta(days=1)
        await jumping.jump(timedelta(days=1))
        with anyio.fail_after(PATIENCE_SECONDS), capture_logs() as log:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_periodically, here.services, often)
                while [entry["event"] for entry in log].count(events.UPKEEP_POSTPONED) < 3:  # noqa: ASYNC110 -- in its own time
                    await anyio.sleep(0.01)
                assert await here.stored() == 1
                here.clock.host = here.clock
                jumps = [entry["event"] for entry in log].count(events.DATABASE_CLOCK_JUMPED)
                await jumping.jump(timedelta(days=-1))
                # An hour counts from when the process hears of it, which a day later would never be over here.
                while [entry["event"] for entry in log].count(events.DATABASE_CLOCK_JUMPED) == jumps:  # noqa: ASYNC110 -- as above
                    await anyio.sleep(0.01)
                assert (await here.client.get(link)).status_code == 200
                await jumping.pass_time(timedelta(days=1))
                while await here.stored():  # noqa: ASYNC110 -- as above
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()


@pytest.mark.parametrize("off", [timedelta(hours=1), timedelta(hours=-1)])
async def test_nothing_is_deleted_while_two_clocks_contradict_each_other(
    database_url: str, tmp_path: Path, off: timedelta
) -> None:
    """One of them is wrong, and a result that is gone cannot be brought back."""
    often = _often(sweep)
    async with world(database_url, tmp_path) as here:
        await here.convert()
        await here.advance(timedelta(days=1))
        here.clock.host = lambda: here.clock.now + off
        with anyio.fail_after(PATIENCE_SECONDS), capture_logs() as log:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_periodically, here.services, often)
                while [entry["event"] for entry in log].count(events.UPKEEP_POSTPONED) < 3:  # noqa: ASYNC110 -- in its own time
                    await anyio.sleep(0.01)
                assert await here.stored() == 1
                here.clock.host = here.clock
                while await here.stored():  # noqa: ASYNC110 -- as above
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
        [postponed, *_] = [entry for entry in log if entry["event"] == events.UPKEEP_POSTPONED]
        assert (postponed["task"], postponed["host_ahead_seconds"]) == ("sweep", off.total_seconds())
