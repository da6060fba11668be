"""A service whose database or work directory is on a full disk refuses what needs more space, and says so."""

import shutil
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from service.db import pool
from service.intake.form import MEBIBYTE
from service.usecases import ending
from service.usecases.audit import audit
from service.usecases.maintenance import recover
from tests.support.data import lakes
from tests.support.small_disk import small_disk
from tests.support.world import world

NO_SPACE = """
CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER no_space BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION no_space();
"""


async def test_a_service_that_can_admit_nothing_is_not_ready(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its heartbeats, which overwrite a row, succeed; it is ready again a while after the last refusal."""
    async with world(database_url, tmp_path) as here:
        assert (await here.client.get("/readyz")).status_code == 200
        async with here.services.database.connection() as connection:
            await connection.execute(NO_SPACE % "job")
        files = {"file": ("a.csv", b"x,y\n1,2\n")}
        refused = await here.client.post("/api/geo/convert/file", files=files, data={"sourceEpsg": "4326"})
        assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
        await here.services.leases.beat()
        answer = await here.client.get("/readyz")
        assert (answer.status_code, answer.json()["checks"]["database"]) == (503, "its disk is full")
        async with here.services.database.connection() as connection:
            await connection.execute("DROP TRIGGER no_space ON job")
        monkeypatch.setattr(pool, "FULL_SECONDS", 0.0)
        assert (await here.client.get("/readyz")).status_code == 200
        await here.convert()


async def test_a_service_without_space_for_uploads_is_not_ready(database_url: str, tmp_path: Path) -> None:
    """Until there is space again; it need not be restarted."""
    with small_disk(tmp_path / "data", 128 << 10) as disk:
        async with world(database_url, disk) as here:
            for fill, verdict in ((True, "its disk is full"), (False, "ok")):
                (disk / "fill").write_bytes(bytes(shutil.disk_usage(disk).free - MEBIBYTE if fill else 0))
                ready = (await here.client.get("/readyz")).json()
                assert ready["checks"]["work"] == verdict
                assert not (ready["ready"] and fill)


async def test_a_client_whose_conversion_cannot_be_charged_is_sent_to_its_job(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears that the database is the cause; whether the conversion counts is decided once the database is back."""
    monkeypatch.setattr(ending, "DATABASE_RETRY_SECONDS", 0.0)
    async with world(database_url, tmp_path) as here:
        async with here.services.database.connection() as connection:
            await connection.execute(NO_SPACE % "ledger")
        again = partial(
            here.client.post,
            "/api/geo/convert/upload",
            files={"file": ("a.geojson", lakes())},
            headers={"Idempotency-Key": "k"},
        )
        answer = await again()
        assert (answer.status_code, answer.json()["code"], "Retry-After" in answer.headers) == (503, "overloaded", True)
        [job] = (await here.client.get("/api/geo/convert/jobs")).json()["jobs"]
        assert f"database at the moment. Query the job {job['jobId']} for" in answer.json()["detail"]
        async with here.services.database.connection() as connection:
            await connection.execute("DROP TRIGGER no_space ON ledger")
        await here.advance(timedelta(minutes=1))
        await recover(here.services)
        job = await here.job(job["jobId"])
        assert (job["status"], "Nothing was counted" in job["errorMessage"]) == ("Failed", True)
        assert [(await again()).json()["remainingConversions"] for _ in range(2)] == [9, 9]
        assert await audit(here.services.database, here.services.storage) == []
