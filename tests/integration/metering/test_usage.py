"""Daily usage adds up to the ledger, and a nearly used allowance is reported once."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from prometheus_client import REGISTRY

from service.app.applications import operations_for
from service.ids import AccountId
from service.metering.usage import DailyUsage
from service.settings import Settings
from service.usecases.maintenance import notice_usage
from tests.support.data import lakes
from tests.support.world import ORIGIN, world

START = datetime(2026, 5, 30, 23, 30, tzinfo=UTC)


def noticed(allowance: str) -> float:
    """How often operators were notified."""
    return REGISTRY.get_sample_value("geomill_allowances_nearly_used_total", {"allowance": allowance}) or 0.0


async def test_usage_by_day_and_what_is_nearly_used(
    database_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Days are in UTC; failures are free; each allowance is reported once a month."""
    async with world(database_url, tmp_path, now=START) as here:
        reports, account_id = here.services.usage, here.account.account_id
        before = noticed("conversions")
        for number in range(8):
            if number == 3:
                await here.advance(timedelta(hours=1))
            await notice_usage(here.services)
            assert noticed("conversions") == before
            await here.convert()
        failed = await here.client.post("/api/geo/convert/file", files={"file": ("a.geojson", b"{")})
        assert not failed.json()["success"]
        size = len(lakes())
        first, second = (
            DailyUsage(day=day, account_id=account_id, files=n, conversions=n, bytes=n * size, cents=0)
            for day, n in ((date(2026, 5, 30), 3), (date(2026, 5, 31), 5))
        )
        assert await reports.by_day(first.day, second.day) == [first, second]
        assert await reports.by_day(second.day, second.day, account_id) == [second]
        assert await reports.by_day(first.day, second.day, AccountId(here.services.leases.server_id)) == []

        for _ in range(2):
            await notice_usage(here.services)
            assert noticed("conversions") == before + 1
        assert capsys.readouterr().out.count("allowance.nearly_used") == 1
        assert noticed("data") == 0
        await here.advance(timedelta(days=1))
        await here.convert()
        await notice_usage(here.services)
        assert noticed("conversions") == before + 1

        application = operations_for(here.services, Settings(private_port=0))
        transport = httpx.ASGITransport(application)
        async with application.lifespan(), httpx.AsyncClient(transport=transport, base_url=ORIGIN) as operator:
            told = (await operator.get("/usage.csv?from=2026-05-30&to=2026-05-31")).text.splitlines()
            wrong = ("from=x", "to=2026-13-01", "from=2026-06-02&to=2026-06-01")
            assert [(await operator.get(f"/usage.csv?{query}")).status_code for query in wrong] == [400] * 3
            assert "/usage.csv" in (await operator.get("/openapi.json")).json()["paths"]
        assert (await here.client.get("/usage.csv")).status_code == 404  # on the port of clients
        assert told[0] == "day,accountId,files,conversions,bytes,cents"
        assert told[1:] == [f"2026-05-30,{account_id},3,3,{3 * size},0", f"2026-05-31,{account_id},5,5,{5 * size},0"]


async def test_the_largest_allowance_is_never_nearly_used(database_url: str, tmp_path: Path) -> None:
    """Nor does it hide that another one is."""
    async with world(database_url, tmp_path, now=START) as here:
        before = noticed("conversions")
        await here.services.database.execute(
            "UPDATE plan SET monthly_data_bytes = 9223372036854775807, monthly_conversions = 1 WHERE id = 'free'"
        )
        await here.convert()
        await notice_usage(here.services)
        assert (noticed("conversions"), noticed("data")) == (before + 1, 0)
