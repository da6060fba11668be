"""The service in this process, with a clock that tests move."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from starlette.types import ASGIApp

from service.accounts.administration import Account, Administration, Terms
from service.app import application_for, open_services
from service.metering.plans import BY_ID
from service.settings import Settings
from service.usecases.services import Services
from tests.support.data import lakes
from tests.support.database_time import stop_time

ORIGIN = "http://geomill.test"
MAY = datetime(2026, 5, 1, 12, tzinfo=UTC)


class MovableClock:
    """A clock that moves only when told to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class World:
    """The service in this process, with a movable clock, and a client on plan free."""

    def __init__(
        self,
        services: Services,
        application: ASGIApp,
        client: httpx.AsyncClient,
        clock: MovableClock,
        account: Account,
    ) -> None:
        self.services = services
        self.application = application
        self.client = client
        self.clock = clock
        self.account = account

    async def move_to(self, now: datetime) -> None:
        """Set the time to `now`, here and in the database."""
        self.clock.now = now
        await stop_time(self.services.database, now)

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


@asynccontextmanager
async def world(
    dsn: str, directory: Path, *, now: datetime = MAY, plan: str = "free", settings: Mapping[str, object] | None = None
) -> AsyncIterator[World]:
    """Open the service with a client of a fresh account; nothing waits for real time to pass."""
    clock = MovableClock(now)
    opened = Settings(data_dir=str(directory), database_url=dsn, **(settings or {}))  # type: ignore[arg-type]  # a test's own
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(opened, clock))
        terms = Terms(plan=plan, plan_owner=BY_ID[plan].owner)
        account, key = await Administration(services.database, clock).create_account("a", terms)
        application = application_for(services, opened)
        await stack.enter_async_context(application.lifespan())
        transport = httpx.ASGITransport(application, raise_app_exceptions=False)
        headers = {"X-API-Key": key.api_key}
        client = httpx.AsyncClient(transport=transport, base_url=ORIGIN, headers=headers)
        here = World(services, application, await stack.enter_async_context(client), clock, account)
        await here.move_to(now)
        yield here
