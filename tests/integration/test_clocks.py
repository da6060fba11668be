"""Hosts whose clocks are wrong, and a database whose clock jumps."""

from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from service.accounts.administration import Administration, Terms
from service.app.applications import application_for
from service.app.services import open_services
from service.clock import DatabaseClock, utc_now
from service.settings import Settings
from tests.support.data import lakes


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
