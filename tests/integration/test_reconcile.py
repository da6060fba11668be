"""Jobs and store are reconciled only if they belong to the same service."""

import json
from datetime import timedelta
from pathlib import Path

import anyio.to_thread

from service.storage.port import new_key
from service.usecases.audit import audit
from tests.support.geomill import Geomill
from tests.support.world import world


async def test_the_store_of_another_database_is_not_emptied(database_url: str, tmp_path: Path) -> None:
    """If no stored output belongs to a job, `reconcile` changes nothing unless it is forced."""
    async with world(database_url, tmp_path / "data") as here:
        job_id = (await here.convert())["jobId"]
        await here.advance(timedelta(seconds=1))
        [output] = (tmp_path / "data" / "store" / "objects").glob("*/*")
        key = new_key()
        foreign = output.parent.with_name(key[:2]) / key
        output.rename(foreign)
        before = await audit(here.services.database, here.services.storage)
        assert len(before) == 2
        geomill = Geomill(tmp_path / "data", {"GEOMILL_DATABASE_URL": database_url})

        refused = await anyio.to_thread.run_sync(geomill, "reconcile")
        assert (refused.returncode, "--force" in refused.stderr) == (1, True)
        assert await audit(here.services.database, here.services.storage) == before

        forced = await anyio.to_thread.run_sync(geomill, "reconcile", "--force", "--json")
        told = json.loads(forced.stdout)
        assert (told["deletedOutputs"], told["expiredJobs"]) == ([key], [job_id])
        assert await audit(here.services.database, here.services.storage) == []
        assert not foreign.exists()
