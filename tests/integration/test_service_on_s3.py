"""The service with its results in a bucket, while the store is available and while it is not."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

import anyio.to_thread
import httpx
import pytest

from service.accounts.administration import Administration, AdministrationError, Changes
from service.clock import utc_now
from service.errors import StorageUnavailable
from service.ids import JobId
from service.jobs.lifecycle import Status
from service.storage.port import MARK, new_key
from service.usecases import check_readiness
from service.usecases.audit import audit
from service.usecases.maintenance import sweep
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.world import World, world

EU_BUCKET = "results-in-europe"


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    """A server with two buckets."""
    directory = tmp_path / "s3"
    (directory / EU_BUCKET).mkdir(parents=True)
    with s3_server(directory) as server:
        yield server


def bucket_settings(server: S3Server) -> dict[str, object]:
    """A home bucket, and one for region eu."""
    return {
        "s3_bucket": BUCKET,
        "s3_endpoint": server.url,
        "s3_access_key": ACCESS_KEY,
        "s3_secret_key": SECRET_KEY,
        "s3_regions": json.dumps({"eu": {"bucket": EU_BUCKET}}),
        "s3_timeout_seconds": 3.0,
    }


@pytest.fixture
def europe(tmp_path: Path) -> Iterator[S3Server]:
    """A server for the region eu alone."""
    directory = tmp_path / "europe"
    directory.mkdir()
    with s3_server(directory) as server:
        yield server


def settings_of_two(home: S3Server, europe: S3Server) -> dict[str, object]:
    """A home bucket, and one for region eu on another server."""
    regions = {"eu": {"bucket": BUCKET, "endpoint": europe.url}}
    return {**bucket_settings(home), "s3_regions": json.dumps(regions)}


def command(data_dir: Path, database_url: str, settings: Mapping[str, object]) -> Geomill:
    """The command with the settings of a service."""
    given = {f"GEOMILL_{name.upper()}": str(value) for name, value in settings.items()}
    return Geomill(data_dir, {"GEOMILL_DATABASE_URL": database_url, **given})


def objects_in(server: S3Server, bucket: str) -> int:
    """How many objects a bucket holds, except its mark."""
    found = [path.name for path in (server.directory / bucket).rglob("*") if path.is_file()]
    return len([name for name in found if not name.startswith(MARK)])


async def test_a_result_is_fetched_from_the_bucket(database_url: str, tmp_path: Path, s3: S3Server) -> None:
    """The link leads to the store and does not need the service."""
    async with world(database_url, tmp_path, now=datetime.now(UTC), settings=bucket_settings(s3)) as here:
        answer = await here.convert()
        assert answer["downloadUrl"].startswith(s3.url)
        async with httpx.AsyncClient() as client:
            response = await client.get(answer["downloadUrl"])
        assert (response.status_code, len(response.content)) == (200, answer["outputSizeBytes"])
        assert 'filename="a.zip"' in response.headers["content-disposition"]
        address, files = "/api/geo/convert/file?download=true", {"file": ("a.geojson", lakes())}
        itself = await here.client.post(address, files=files, data={"outputFormat": "Csv"})
        assert (itself.status_code, b"Titicaca" in itself.content) == (200, True)


async def test_a_plan_with_the_choice_keeps_outputs_where_its_account_wants(
    database_url: str, tmp_path: Path, s3: S3Server
) -> None:
    """On plan business in the chosen region; after a change of plan, at home again."""
    async with world(
        database_url, tmp_path, now=datetime.now(UTC), plan="business", settings=bucket_settings(s3)
    ) as here:
        administration = Administration(here.services.database, utc_now)
        account_id = here.account.account_id
        await here.convert()
        await administration.change_account(account_id, Changes(storage_region="eu"))
        await here.convert()
        assert (objects_in(s3, BUCKET), objects_in(s3, EU_BUCKET)) == (1, 1)
        await administration.change_account(account_id, Changes(plan="team", plan_owner="organization"))
        await here.convert()
        assert (objects_in(s3, BUCKET), objects_in(s3, EU_BUCKET)) == (2, 1)
        with pytest.raises(AdministrationError, match="storage region"):
            await administration.change_account(account_id, Changes(storage_region="eu"))
        assert await audit(here.services.database, here.services.storage) == []


async def test_a_region_that_is_away_keeps_no_result_of_another_beyond_its_retention(
    database_url: str, tmp_path: Path, s3: S3Server, europe: S3Server
) -> None:
    """Results, and what appears late, are removed elsewhere, and from there once it is back."""
    settings = settings_of_two(s3, europe)
    async with world(database_url, tmp_path, now=datetime.now(UTC), plan="business", settings=settings) as here:
        database = here.services.database
        change = partial(Administration(database, utc_now).change_account, here.account.account_id)
        for region in ("eu", ""):
            await change(Changes(storage_region=region))
            late = new_key(region)
            (tmp_path / late[-32:]).touch()
            await here.services.storage.put(late, tmp_path / late[-32:], media_type="a/b", download_name="late")
            await database.execute("INSERT INTO late_object VALUES ($1, now(), now())", late)
            await here.convert()
        assert (objects_in(s3, BUCKET), objects_in(europe, BUCKET)) == (2, 2)
        await here.advance(timedelta(days=60))
        europe.kill()
        with pytest.raises(StorageUnavailable):
            await sweep(here.services)
        assert objects_in(s3, BUCKET) == 0
        europe.start()
        await sweep(here.services)
        assert await here.stored() == 0


async def test_an_account_is_deleted_although_a_region_is_away(
    database_url: str, tmp_path: Path, s3: S3Server, europe: S3Server
) -> None:
    """Results elsewhere are erased, the operator is told what is left, and the service or a repeat erases that."""
    settings = settings_of_two(s3, europe)
    async with world(database_url, tmp_path, now=datetime.now(UTC), plan="business", settings=settings) as here:
        account_id = here.account.account_id
        change = partial(Administration(here.services.database, utc_now).change_account, account_id)
        await here.convert()
        await change(Changes(storage_region="eu"))
        jobs = [(await here.convert())["jobId"] for _ in range(2)]
        europe.kill()
        geomill = command(tmp_path, database_url, {**settings, "s3_attempts": 1})
        deletion = ("account", "delete", str(account_id), "--yes", "--json")
        told = await anyio.to_thread.run_sync(geomill, *deletion)
        assert (told.returncode, "1 results are erased" in told.stderr) == (1, True), told
        assert "2 in the region eu (down: " in told.stderr
        assert objects_in(s3, BUCKET) == 0
        found = await here.services.jobs.of_any([JobId(UUID(job)) for job in jobs])
        assert {(job.status, job.original_file_name) for job in found} == {(Status.EXPIRED, "")}
        europe.start()
        assert objects_in(europe, BUCKET) == 2
        repeated = await anyio.to_thread.run_sync(geomill, *deletion)
        assert json.loads(repeated.stdout)["erasedResults"] == 2, repeated
        assert objects_in(europe, BUCKET) == 0


async def test_a_region_in_doubt_keeps_no_other_from_being_reconciled(
    database_url: str, tmp_path: Path, s3: S3Server
) -> None:
    """One that has only an output without a job: the operator is told, and may force that region alone."""
    settings = bucket_settings(s3)
    async with world(database_url, tmp_path, now=datetime.now(UTC), settings=settings) as here:
        await here.convert()
        orphans = [new_key(), new_key("eu")]
        (tmp_path / "orphan").touch()
        for key in orphans:
            await here.services.storage.put(key, tmp_path / "orphan", media_type="a/b", download_name="orphan")
        geomill = command(tmp_path, database_url, settings)
        told = await anyio.to_thread.run_sync(geomill, "reconcile", "--json")
        assert (told.returncode, json.loads(told.stdout)["deletedOutputs"]) == (1, orphans[:1]), told
        [difference] = json.loads(told.stdout)["differences"]
        assert "`geomill reconcile --region eu --force`" in difference
        forced = await anyio.to_thread.run_sync(geomill, "reconcile", "--region", "eu", "--force", "--json")
        assert (forced.returncode, json.loads(forced.stdout)["deletedOutputs"]) == (0, orphans[1:]), forced
        assert await audit(here.services.database, here.services.storage) == []


async def test_results_of_a_region_that_is_not_set_are_not_lost(
    database_url: str, tmp_path: Path, s3: S3Server
) -> None:
    """`geomill reconcile` may have a part of the settings: it says so, and gives results up only if it is forced."""
    settings = bucket_settings(s3)
    async with world(database_url, tmp_path, now=datetime.now(UTC), plan="business", settings=settings) as here:
        change = partial(Administration(here.services.database, utc_now).change_account, here.account.account_id)
        kept = await here.convert()
        await change(Changes(storage_region="eu"))
        far = await here.convert()
        await here.advance(timedelta(seconds=1))
        whole = command(tmp_path, database_url, settings)
        part = command(tmp_path, database_url, {**settings, "s3_regions": "{}"})
        mistaken = command(tmp_path, database_url, {**settings, "s3_regions": '{"eu": {"prefix": "other/"}}'})

        told = await anyio.to_thread.run_sync(part, "reconcile", "--json")
        assert json.loads(told.stdout)["expiredJobs"] == [], told
        [difference] = json.loads(told.stdout)["differences"]
        assert "the region eu" in difference
        audited = await anyio.to_thread.run_sync(part, "audit")
        assert audited.stdout.splitlines() == [difference]
        refused = await anyio.to_thread.run_sync(mistaken, "reconcile")
        assert (refused.returncode, "The region eu was not compared" in refused.stdout) == (1, True), refused
        audited = await anyio.to_thread.run_sync(whole, "audit")
        assert audited.returncode == 0, audited

        forced = await anyio.to_thread.run_sync(part, "reconcile", "--json", "--force")
        assert json.loads(forced.stdout)["expiredJobs"] == [far["jobId"]]
        assert [(await here.job(job["jobId"]))["status"] for job in (kept, far)] == ["Completed", "Expired"]


async def test_without_its_store_the_service_fails_clearly_and_charges_nothing(
    database_url: str, tmp_path: Path, s3: S3Server
) -> None:
    """Conversions fail with a remedy, readiness says so, and once the store is back no restart is needed."""
    async with world(database_url, tmp_path, now=datetime.now(UTC), settings=bucket_settings(s3)) as here:
        await here.convert()
        s3.kill()
        failed = await _send(here)
        assert (failed["success"], failed["status"]) == (False, "Failed")
        assert "Nothing was counted" in str(failed["error"])
        assert s3.url not in str(failed["error"])
        ready = await here.client.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["storage"]) == (503, "down")
        s3.start()
        answer = await here.convert()
        assert answer["remainingConversions"] == 8
        assert (await here.client.get("/readyz")).status_code == 200


async def test_a_store_that_accepts_credentials_and_no_objects_is_not_ready(
    database_url: str, tmp_path: Path, s3: S3Server
) -> None:
    """The bucket is there, but nothing can be put into it; readiness says so, and when it works again."""
    obstacle = s3.directory / BUCKET / "results"
    obstacle.touch()
    async with world(database_url, tmp_path, now=datetime.now(UTC), settings=bucket_settings(s3)) as here:
        ready = await here.client.get("/readyz")
        assert (ready.status_code, "objects cannot be" in ready.json()["checks"]["storage"]) == (503, True)
        obstacle.unlink(missing_ok=True)
        s3.kill()  # it remembers what was in its directory
        s3.start()
        assert (await here.client.get("/readyz")).status_code == 200
        assert await audit(here.services.database, here.services.storage) == []


async def test_a_store_that_is_slow_to_take_an_object_is_ready(
    database_url: str, tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe takes no connection that uploads or downloads need, and its lateness takes no server out of service."""
    monkeypatch.setattr(check_readiness, "OBJECTS_SECONDS", 0.0)
    async with world(database_url, tmp_path, now=datetime.now(UTC), settings=bucket_settings(s3)) as here:
        assert (await here.client.get("/readyz")).status_code == 200
        monkeypatch.undo()
        await here.services.storage.check_objects()
        assert objects_in(s3, BUCKET) == 1


async def _send(here: World) -> dict[str, object]:
    response = await here.client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())})
    answer: dict[str, object] = response.json()
    return answer
