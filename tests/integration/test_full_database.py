"""A database whose disk is full refuses what needs more space, and goes on doing what does not."""

from pathlib import Path

import pytest

from service.db import pool
from tests.support.world import world

FILL = """
CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER no_space BEFORE INSERT ON job FOR EACH ROW EXECUTE FUNCTION no_space();
"""


async def test_a_service_that_can_admit_nothing_is_not_ready(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although its heartbeats, which overwrite a row, succeed; it is ready again a while after the last refusal."""
    async with world(database_url, tmp_path) as here:
        assert (await here.client.get("/readyz")).status_code == 200
        async with here.services.database.connection() as connection:
            await connection.execute(FILL)
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
