"""Jobs and store are reconciled only if they belong to the same service, and also while the queue is away."""

import json
from datetime import timedelta
from pathlib import Path

import anyio.to_thread

from service.storage.port import new_key
from service.usecases.audit import audit
from tests.support.geomill import Geomill
from tests.support.ports import free_port
from tests.support.world import World, world


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
        assert len(before) == 3
        assert "It may be the store of another database" in before[0]
        geomill = Geomill(tmp_path / "data", {"GEOMILL_DATABASE_URL": database_url})

        refused = await anyio.to_thread.run_sync(geomill, "reconcile")
        assert (refused.returncode, "reconcile --region home --force" in refused.stdout) == (1, True)
        assert await audit(here.services.database, here.services.storage) == before

        forced = await anyio.to_thread.run_sync(geomill, "reconcile", "--force", "--json")
        told = json.loads(forced.stdout)
        assert (told["deletedOutputs"], told["expiredJobs"]) == ([key], [job_id])
        assert await audit(here.services.database, here.services.storage) == []
        assert not foreign.exists()


async def test_jobs_and_store_are_compared_while_the_queue_is_away(database_url: str, tmp_path: Path) -> None:
    """The queue is one of the differences that `audit` names, and the only one that `reconcile` leaves."""
    async with world(database_url, tmp_path / "data") as here:
        lost, orphan = await _lost_job_and_place_of_an_orphan(here, tmp_path)
        orphan.write_bytes(b"{}")
        await here.advance(timedelta(seconds=1))
        settings = {"GEOMILL_DATABASE_URL": database_url, "GEOMILL_NATS_URL": f"nats://127.0.0.1:{free_port()}"}
        geomill = Geomill(tmp_path / "data", settings)

        audited = await anyio.to_thread.run_sync(geomill, "audit")
        *differences, away = audited.stdout.splitlines()
        assert (audited.returncode, differences) == (
            1,
            [f"The stored output {orphan.name} belongs to no job.", f"The output of job {lost} is not in the store."],
        ), audited
        assert away.startswith("The queue could not be compared with the jobs: The NATS server of GEOMILL_NATS_URL")

        mended = await anyio.to_thread.run_sync(geomill, "reconcile", "--json")
        told = json.loads(mended.stdout)
        assert (mended.returncode, told["deletedOutputs"], told["expiredJobs"]) == (1, [orphan.name], [lost])
        assert told["differences"] == [away]
        assert await audit(here.services.database, here.services.storage) == []


async def test_a_store_that_fails_does_not_conceal_what_was_done(database_url: str, tmp_path: Path) -> None:
    """A job that became Expired is named although an output that belongs to no job cannot be deleted."""
    async with world(database_url, tmp_path / "data") as here:
        lost, orphan = await _lost_job_and_place_of_an_orphan(here, tmp_path)
        (orphan / "in the way").mkdir(parents=True)
        await here.advance(timedelta(seconds=1))
        geomill = Geomill(tmp_path / "data", {"GEOMILL_DATABASE_URL": database_url})
        failed = await anyio.to_thread.run_sync(geomill, "reconcile", "--json")
        assert (failed.returncode, "store" in failed.stderr) == (1, True), failed
        assert json.loads(failed.stdout)["expiredJobs"] == [lost]


async def _lost_job_and_place_of_an_orphan(here: World, directory: Path) -> tuple[str, Path]:
    """A job whose output is gone, beside one that is whole; and where an output that belongs to no job would be."""
    objects = directory / "data" / "store" / "objects"
    lost = str((await here.convert())["jobId"])
    [output] = objects.glob("*/*")
    output.unlink()
    await here.convert()
    orphan = objects / (key := new_key())[:2] / key
    orphan.parent.mkdir(exist_ok=True)
    return lost, orphan
