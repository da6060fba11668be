"""The service in this process, with a clock that tests move.

`world` opens one, which takes a second. `here` is one that tests share; each finds it with an account of its own, at
the beginning of a month, with no open job and nothing stored.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio
from starlette.types import ASGIApp

from service.accounts.administration import Account, Administration, Terms
from service.app.applications import application_for
from service.app.services import open_services
from service.clock import DatabaseClock
from service.metering.plans import BY_ID
from service.settings import Settings
from service.usecases.ending import JobParts
from service.usecases.maintenance import recover, sweep
from service.usecases.services import Services
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.database_time import stopping_time

ORIGIN = "http://geomill.test"
MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)


class MovableClock(DatabaseClock):
    """A clock that moves only when told to, and on which seconds pass only then."""

    def __init__(self, now: datetime) -> None:
        super().__init__(host=self, seconds=self._seconds)
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def _seconds(self) -> float:
        return self.now.timestamp()


class World:
    """The service in this process, with a movable clock, and a client on plan free."""

    def __init__(
        self,
        services: Services,
        application: ASGIApp,
        client: httpx.AsyncClient,
        clock: MovableClock,
        account: Account,
        *,
        directory: Path,
    ) -> None:
        self.services = services
        self.application = application
        self.client = client
        self.clock = clock
        self.account = account
        self.directory = directory

    async def move_to(self, now: datetime) -> None:
        """Set the time to `now`, here and in the database."""
        async with stopping_time(self.services.database, now):
            self.clock.now = now

    async def advance(self, by: timedelta) -> None:
        """Advance the time, here and in the database."""
        await self.move_to(self.clock.now + by)

    async def convert(self) -> dict[str, Any]:
        """Convert a file successfully."""
        files = {"file": ("a.geojson", lakes())}
        answer: dict[str, Any] = (await self.client.post("/api/geo/convert/upload", files=files)).json()
        assert answer["success"], answer
        return answer

    async def job(self, job_id: str) -> dict[str, Any]:
        """The job's record."""
        record: dict[str, Any] = (await self.client.get(f"/api/geo/convert/jobs/{job_id}/status")).json()
        return record

    async def stored(self) -> int:
        """The number of stored outputs."""
        return len([entry async for entry in self.services.storage.objects()])


def parts_of(services: Services) -> JobParts:
    """What running a job of this service needs."""
    return JobParts(
        ledger=services.ledger,
        jobs=services.jobs,
        engine=services.engine,
        pool=services.pool,
        storage=services.storage,
        own_store=services.own_store,
        work_area=services.work_area,
    )


@asynccontextmanager
async def world(
    dsn: str, directory: Path, *, now: datetime = MAY, plan: str = "free", settings: Mapping[str, object] | None = None
) -> AsyncIterator[World]:
    """Open the service with a client of a fresh account; nothing waits for real time to pass."""
    clock = MovableClock(now)
    opened = Settings(data_dir=str(directory), database_url=dsn, **(settings or {}))  # type: ignore[arg-type]  # a test's own
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(opened, clock))
        application = application_for(services, opened)
        await stack.enter_async_context(application.lifespan())
        here = await stack.enter_async_context(_visited(services, application, clock, directory, plan))
        await here.move_to(now)
        await services.leases.beat()
        yield here


@asynccontextmanager
async def _visited(
    services: Services, application: ASGIApp, clock: MovableClock, directory: Path, plan: str
) -> AsyncIterator[World]:
    """The service with a client of a fresh account."""
    terms = Terms(plan=plan, plan_owner=BY_ID[plan].owner)
    account, key = await Administration(services.database, clock).create_account("a", terms)
    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    headers = {"X-API-Key": key.api_key}
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers) as client:
        yield World(services, application, client, clock, account, directory=directory)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_world(postgres: TestServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """A world for the whole run, opened and closed by one task, as what it consists of asks for."""
    dsn = postgres.create_database(postgres.migrated_template())
    is_open, is_over = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def own() -> None:
        async with world(dsn, tmp_path_factory.mktemp("world")) as opened:
            is_open.set_result(opened)
            await is_over.wait()

    owner = asyncio.create_task(own())
    await asyncio.wait([owner, is_open], return_when=asyncio.FIRST_COMPLETED)
    if owner.done():
        await owner
    yield is_open.result()
    is_over.set()
    await owner


@pytest_asyncio.fixture(loop_scope="session")
async def here(shared_world: World, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """The shared service for one test, with an account on plan free, or on the plan that is the fixture's parameter.

    Such tests belong to the event loop of the session: `pytestmark = pytest.mark.asyncio(loop_scope="session")`.
    """
    services, clock = shared_world.services, shared_world.clock
    assert left_behind(services) == [], "a test has used `setattr` instead of `setitem(vars(part), …)`"
    start = (clock.now + timedelta(days=62)).replace(day=1, hour=12, minute=0)
    for lease in (timedelta(minutes=1), timedelta()):  # after a test whose clocks differed, nobody judges for a lease
        await shared_world.move_to(start - lease)
        await services.leases.beat()
    await recover(services)
    await sweep(services)
    plan, application = getattr(request, "param", "free"), shared_world.application
    async with _visited(services, application, clock, shared_world.directory, plan) as visited:
        assert await visited.stored() == 0
        assert await services.ledger.reservations() == 0
        yield visited


def left_behind(services: Services) -> list[str]:
    """The methods that tests have replaced in parts of the service, where they hide what later tests replace."""
    parts = [part for part in msgspec.structs.asdict(services).values() if hasattr(part, "__dict__")]
    return [f"{type(part).__name__}.{name}" for part in parts for name in vars(part) if hasattr(type(part), name)]
