"""A database and its store know each other: with another store, nothing is stored, deleted or taken for deleted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import anyio.lowlevel
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from service.errors import ForeignStore, ObjectsLeft
from service.formats.request import ConversionRequest
from service.ids import AccountId, JobId
from service.jobs.records import Job
from service.jobs.spec import JobSpec, SourceSpec
from service.postgres_embedded.server_user import find_server_user
from service.storage.local import LocalStorage, open_local
from service.usecases.audit import audit
from service.usecases.ending import end_on_record
from service.usecases.maintenance import GRACE, know_store, sweep
from service.usecases.own_store import OwnStore
from tests.database import TestServer, database_name, fast_directory
from tests.e2e.test_backup import postgres_program
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.replication import PostgresServer
from tests.support.world import World, parts_of, world

RETENTION = timedelta(days=60)


def marks(data: Path) -> list[Path]:
    """The marks in the store of a data directory."""
    return sorted((data / "store").glob("mark-*"))


async def erase(here: World, job_id: str) -> int:
    """Ask for the deletion of a result; return the status."""
    return (await here.client.delete(f"/api/geo/convert/jobs/{job_id}")).status_code


async def test_a_process_with_another_store_leaves_everything_to_those_with_the_right_one(
    database_url: str, tmp_path: Path
) -> None:
    """It is not ready, converts nothing, erases nothing and sweeps nothing; they do."""
    async with world(database_url, tmp_path / "right") as right:
        kept, old = [str((await right.convert())["jobId"]) for _ in range(2)]
        async with world(database_url, tmp_path / "wrong") as wrong:
            ready = (await wrong.client.get("/readyz")).json()["checks"]["storage"]
            assert ready == "misconfigured: this is not the store in which the database has its results"
            files = {"file": ("a.geojson", lakes())}
            refused = (await wrong.client.post("/api/geo/convert/upload", files=files)).json()
            assert (refused["status"], "Nothing was counted" in refused["error"]) == ("Failed", True)
            wrong.client.headers["X-API-Key"] = right.client.headers["X-API-Key"]
            assert await erase(wrong, old) == 503
            await wrong.advance(RETENTION + GRACE)
            with pytest.raises(ForeignStore):
                await sweep(wrong.services)
            assert (await wrong.stored(), marks(tmp_path / "wrong")) == (0, [])
        right.clock.now = wrong.clock.now
        assert await right.stored() == 2
        await sweep(right.services)
        assert await right.stored() == 0
        assert (await right.job(kept))["status"] == "Expired"
        assert await audit(right.services.database, right.services.storage) == []


async def test_an_installation_of_an_earlier_version_is_adopted_with_its_results(
    database_url: str, tmp_path: Path
) -> None:
    """And with no other store, as long as there are any; also one that has lost only its mark."""
    async with world(database_url, tmp_path / "right") as here:
        await here.convert()
        database, own_store = here.services.database, here.services.own_store
        for statement in ("DELETE FROM store_mark", "SELECT"):
            await database.execute(statement)
            for mark in marks(tmp_path / "right"):
                mark.unlink()
            async with open_local(tmp_path / "wrong" / "store", [b"secret"]) as wrong:
                with pytest.raises(ForeignStore):
                    await OwnStore(database, wrong).keep()
            await own_store.keep()
            assert len(marks(tmp_path / "right")) == 1
        await here.services.database.execute("UPDATE job SET status = 'Expired', object_key = NULL")
        marks(tmp_path / "right")[0].unlink()
        with pytest.raises(ForeignStore):
            await own_store.keep()


async def test_of_two_processes_that_start_at_once_only_those_with_one_store_are_right(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one with another store waits until the first one has marked its own."""
    mark, marking, go_on = LocalStorage.mark, anyio.Event(), anyio.Event()

    async def held(storage: LocalStorage, region: str, name: str) -> None:
        marking.set()
        await go_on.wait()
        await mark(storage, region, name)

    async with (
        world(database_url, tmp_path / "data") as here,
        open_local(tmp_path / "one", [b"secret"]) as one,
        open_local(tmp_path / "two", [b"secret"]) as two,
        anyio.create_task_group() as tasks,
    ):
        database = here.services.database
        await database.execute("DELETE FROM store_mark")
        monkeypatch.setattr(LocalStorage, "mark", held)
        tasks.start_soon(OwnStore(database, one).keep)
        await marking.wait()
        tasks.start_soon(OwnStore(database, one).keep)
        monkeypatch.undo()
        refused = anyio.Event()

        async def refuse() -> None:
            with pytest.raises(ForeignStore):
                await OwnStore(database, two).keep()
            refused.set()

        tasks.start_soon(refuse)
        await anyio.lowlevel.checkpoint()
        go_on.set()
        await refused.wait()
        assert (len(await one.marks("")), len(await two.marks(""))) == (1, 0)


async def test_two_databases_that_share_a_store_delete_nothing_of_each_other(
    postgres: TestServer, database_url: str, tmp_path: Path
) -> None:
    """Whether or not `reconcile` is forced; the operator is told of which mark that depends."""
    other_url = postgres.create_database(postgres.migrated_template())
    async with world(database_url, tmp_path) as here, world(other_url, tmp_path) as other:
        await here.convert()
        await other.convert()
        theirs = {path.name for path in marks(tmp_path)}
        geomill = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": database_url})
        for options in ((), ("--force",)):
            done = await anyio.to_thread.run_sync(geomill, "reconcile", *options)
            assert done.returncode == 1, done
            assert "may belong to another database" in done.stdout
            assert sum(name in done.stdout for name in theirs) == 1
            assert await here.stored() == 2
        assert {path.name for path in marks(tmp_path)} == theirs
        [told] = await audit(other.services.database, other.services.storage)
        assert "1 outputs" in told
    postgres.drop_database(other_url)


COPIED = "this database is a copy of the one that has its results in the store"


@contextmanager
def copied(postgres: TestServer, dsn: str, directory: Path, *, is_elsewhere: bool) -> Iterator[str]:
    """The address of a copy of a database, beside it or in another cluster."""
    if not is_elsewhere:
        yield (copy := postgres.create_database(database_name(dsn)))
        postgres.drop_database(copy)
        return
    with fast_directory() as place:
        if (user := find_server_user()).switched:
            os.chown(place, user.uid, user.gid)
        server = PostgresServer(place)
        server.create()
        server.start()
        try:
            postgres_program("pg_dump", "--format=custom", f"--file={directory / 'dump'}", dsn)
            postgres_program(
                "pg_restore", "--no-owner", "--exit-on-error", f"--dbname={server.dsn}", str(directory / "dump")
            )
            yield server.dsn
        finally:
            server.stop()


def attempt_at(job: Job) -> JobSpec:
    """An attempt of a job that a process has not ended, and whose output it has perhaps stored."""
    return JobSpec(
        job=job,
        account_id=AccountId(uuid4()),
        upload="a.geojson",
        source=SourceSpec(
            format="geojson", parts=(), stem="a", prefix="", options=(), warnings=(), warnings_without={}
        ),
        target="csv",
        request=ConversionRequest(output="csv"),
        retention_hours=4,
        object_key=job.object_key or "",
    )


@pytest.mark.parametrize("is_elsewhere", [True, False])
async def test_a_copy_of_a_database_deletes_nothing_of_its_original_until_it_is_told(
    postgres: TestServer, database_url: str, tmp_path: Path, *, is_elsewhere: bool
) -> None:
    """Neither what it knows nor what was stored since. It converts meanwhile, and deletes once told."""
    async with world(database_url, tmp_path) as original:
        known, key = str((await original.convert())["jobId"]), original.client.headers["X-API-Key"]
    with copied(postgres, database_url, tmp_path, is_elsewhere=is_elsewhere) as copy_url:
        geomill = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": copy_url})
        async with world(database_url, tmp_path) as original:
            since = JobId(UUID(str((await original.convert())["jobId"])))
            later = await original.services.jobs.find(since, original.account.account_id)
        async with world(copy_url, tmp_path) as copy:
            await copy.convert()
            copy.client.headers["X-API-Key"] = key
            assert await erase(copy, known) == 503
            audited = await anyio.to_thread.run_sync(geomill, "audit")
            assert (audited.returncode, COPIED in audited.stdout.splitlines()[0]) == (1, True), audited
            left = await anyio.to_thread.run_sync(geomill, "reconcile")
            assert (left.returncode, "run `geomill reconcile --region home --force`" in left.stdout) == (1, True), left
            doctor = await anyio.to_thread.run_sync(geomill, "doctor")
            assert (
                "warn store                          this database is a copy of the one that has its " in doctor.stdout
            )
            with capture_logs() as log, pytest.raises(ForeignStore):
                await know_store(copy.services)  # as at its start, and every minute
            assert [(entry["event"], entry["detail"]) for entry in log] == [("storage.failed", COPIED)]
            await copy.advance(RETENTION + GRACE)
            with pytest.raises(ObjectsLeft):
                await sweep(copy.services)
            await end_on_record(parts_of(copy.services), attempt_at(later), may_have_stored=True)
            assert await copy.stored() == 3
            told = await anyio.to_thread.run_sync(geomill, "reconcile", "--region", "home", "--force")
            assert told.returncode == 0, told
            await sweep(copy.services)
            assert await copy.stored() == 0


async def test_a_store_whose_results_are_lost_is_used_again_once_it_is_forced(
    database_url: str, tmp_path: Path
) -> None:
    """As after a disk was replaced: `reconcile` says so, and with `--force` gives them up and marks the new store."""
    async with world(database_url, tmp_path / "old") as here:
        job_id = str((await here.convert())["jobId"])
        await here.advance(timedelta(seconds=1))
        geomill = Geomill(tmp_path / "new", {"GEOMILL_DATABASE_URL": database_url})
        refused = await anyio.to_thread.run_sync(geomill, "reconcile")
        assert (refused.returncode, "geomill reconcile --region home --force" in refused.stdout) == (1, True), refused
        assert (await here.job(job_id))["status"] == "Completed"
        doctor = await anyio.to_thread.run_sync(geomill, "doctor")
        assert "belongs to another database" in doctor.stdout
        forced = await anyio.to_thread.run_sync(geomill, "reconcile", "--force")
        assert forced.returncode == 0, forced
        assert (await here.job(job_id))["status"] == "Expired"
    async with world(database_url, tmp_path / "new") as here:
        assert (await here.convert())["success"]
        assert (await here.client.get("/readyz")).status_code == 200
