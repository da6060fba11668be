"""An output lives as long as its plan keeps it, however late the sweep comes (interface 3)."""

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from service.storage.port import new_input_key, new_key
from service.usecases.audit import audit
from service.usecases.maintenance import sweep
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the shared service


async def test_a_job_expires_on_time_though_nothing_was_swept(here: World) -> None:
    """After four hours on plan free: Expired, without a link, and the old link stops working."""
    answer = await here.convert()
    assert (await here.client.get(answer["downloadUrl"])).status_code == 200
    await here.advance(timedelta(hours=3, minutes=59))
    assert (await here.job(answer["jobId"]))["status"] == "Completed"
    await here.advance(timedelta(minutes=1))
    job = await here.job(answer["jobId"])
    assert job["status"] == "Expired"
    assert not {"downloadUrl", "downloadExpiresAt"} & set(job)
    assert (await here.client.get(answer["downloadUrl"])).status_code == 410
    assert await here.stored() == 1


async def test_the_sweeper_removes_what_has_expired_and_only_that(here: World) -> None:
    """The older output goes, the newer stays; sweeping twice changes nothing; the books agree throughout."""
    older = await here.convert()
    await here.advance(timedelta(hours=2))
    newer = await here.convert()
    await here.advance(timedelta(hours=2, minutes=2))
    for _ in range(2):
        await sweep(here.services)
        assert await here.stored() == 1
    assert (await here.job(older["jobId"]))["status"] == "Expired"
    assert (await here.client.get((await here.job(newer["jobId"]))["downloadUrl"])).status_code == 200
    assert await audit(here.services.database, here.services.storage) == []


async def test_each_read_signs_a_fresh_link_that_ends_with_the_retention(here: World) -> None:
    """`expires_at` is accurate, however late the link was signed."""
    expires_at = here.clock.now + timedelta(hours=4)
    answer = await here.convert()
    await here.advance(timedelta(hours=1))
    job = await here.job(answer["jobId"])
    assert job["downloadExpiresAt"] == answer["downloadExpiresAt"] == f"{expires_at:%Y-%m-%dT%H:%M}:00.000Z"


async def test_a_new_month_has_its_whole_allowance(here: World) -> None:
    """The period is the calendar month in UTC (interface 6)."""
    next_month = (here.clock.now + timedelta(days=31)).replace(day=1, hour=0)
    await here.move_to(next_month - timedelta(minutes=1))
    assert [(await here.convert())["remainingConversions"] for _ in range(2)] == [9, 8]
    await here.advance(timedelta(minutes=1))
    assert (await here.convert())["remainingConversions"] == 9


@pytest.mark.parametrize("damage", ["orphan", "lost"])
async def test_the_audit_finds_outputs_without_a_job_and_jobs_without_an_output(here: World, damage: str) -> None:
    """Each is named."""
    await here.convert()
    await here.advance(timedelta(seconds=1))
    stored = [entry.key async for entry in here.services.storage.objects()]
    here.clock.now -= timedelta(days=1)  # the database tells when it was looked
    if damage == "lost":
        await here.services.storage.delete(stored)
        expected = "is not in the store"
    else:
        async with here.services.database.connection() as connection:
            await connection.execute(
                "UPDATE job SET object_key = repeat('0', 32) WHERE account_id = $1", here.account.account_id
            )
        expected = f"{stored[0]} belongs to no job"
    found = await audit(here.services.database, here.services.storage)
    await here.services.storage.delete(stored)
    assert any(expected in line for line in found), found


@pytest.mark.parametrize("here", ["team"], indirect=True)
async def test_what_appears_under_a_key_that_was_given_up_is_removed_for_a_month(here: World, tmp_path: Path) -> None:
    """At growing intervals of at most a day; then the key is forgotten. Nothing else is touched meanwhile."""
    await here.convert()
    storage, key, late = here.services.storage, new_key(), tmp_path / "late"
    async with here.services.database.connection() as connection:
        await connection.execute("INSERT INTO late_object VALUES ($1, service_time(), service_time())", key)

    async def is_removed_after(time: timedelta) -> bool:
        late.write_bytes(b"late")
        await storage.put(key, late, media_type="text/csv", download_name="a.csv")
        await here.advance(time)
        await sweep(here.services)
        return key not in [entry.key async for entry in storage.objects()]

    assert await is_removed_after(timedelta())
    assert not await is_removed_after(timedelta(seconds=59))
    assert await is_removed_after(timedelta(seconds=1))
    assert not await is_removed_after(timedelta(minutes=1))
    assert await is_removed_after(timedelta(minutes=1))
    assert await is_removed_after(timedelta(hours=30))
    assert await here.stored() == 1
    assert not await is_removed_after(timedelta(hours=23))
    assert await is_removed_after(timedelta(hours=1))
    assert await is_removed_after(timedelta(days=29))
    assert not await is_removed_after(timedelta(days=2))
    await storage.delete([key])


async def test_a_preview_goes_with_its_result(here: World) -> None:
    """The audit accounts for it until both are removed at the end of the retention."""
    job_id = (await here.convert())["jobId"]
    assert (await here.client.get(f"/api/geo/convert/jobs/{job_id}/preview")).status_code == 200
    assert await here.stored() == 2
    assert await audit(here.services.database, here.services.storage) == []
    await here.advance(timedelta(hours=5))
    gone = await here.client.get(f"/api/geo/convert/jobs/{job_id}/preview")
    assert (gone.status_code, gone.json()["code"]) == (409, "no_result")
    await sweep(here.services)
    assert await here.stored() == 0
    assert await audit(here.services.database, here.services.storage) == []


async def test_a_preview_is_erased_with_its_result(here: World) -> None:
    """At once, since its owner asked for it."""
    job_id = (await here.convert())["jobId"]
    assert (await here.client.get(f"/api/geo/convert/jobs/{job_id}/preview")).status_code == 200
    assert (await here.client.delete(f"/api/geo/convert/jobs/{job_id}")).status_code == 204
    assert await here.stored() == 0
    assert await audit(here.services.database, here.services.storage) == []


async def test_a_request_that_stores_an_erased_result_late_leaves_nothing(here: World, tmp_path: Path) -> None:
    """It had no answer in time and was repeated, so that the job completed; it arrives after the erasure."""
    job_id = (await here.convert())["jobId"]
    storage = here.services.storage
    [stored] = [entry.key async for entry in storage.objects()]
    assert (await here.client.delete(f"/api/geo/convert/jobs/{job_id}")).status_code == 204
    (tmp_path / "late").write_bytes(b"late")
    await storage.put(stored, tmp_path / "late", media_type="text/csv", download_name="a.csv")
    for days in range(2):
        await here.advance(timedelta(days=days, minutes=20))
        await sweep(here.services)
        assert await here.stored() == 0
    async with here.services.database.connection() as connection:
        assert not await connection.fetch("SELECT FROM late_object WHERE object_key = $1", stored)


async def test_a_request_that_stores_an_input_late_leaves_nothing(here: World, tmp_path: Path) -> None:
    """As that of a result: a gateway has repeated it, and a worker has converted the input, which was removed."""
    job_id = (await here.convert())["jobId"]
    storage, key = here.services.storage, new_input_key(new_key())
    (tmp_path / "input").write_bytes(b"input")
    put = partial(storage.put, key, tmp_path / "input", media_type="text/csv", download_name="a.csv")
    async with here.services.database.connection() as connection:
        await connection.execute("UPDATE job SET input_key = $2, handover = 'told' WHERE id = $1", job_id, key)
    for minutes in (1, 20):
        await put()
        assert len(list(here.directory.rglob(key))) == 1
        await here.advance(timedelta(minutes=minutes))
        await sweep(here.services)
        assert not list(here.directory.rglob(key))


@pytest.mark.parametrize(("others", "region"), [(501, ""), (1, "elsewhere/")])
async def test_what_others_left_does_not_delay_the_erasure_of_a_result(here: World, others: int, region: str) -> None:
    """Neither by many keys that other jobs gave up, nor by one in an unavailable store."""
    job_id = (await here.convert())["jobId"]
    assert (await here.client.get(f"/api/geo/convert/jobs/{job_id}/preview")).status_code == 200
    assert await here.stored() == 2
    async with here.services.database.connection() as connection:
        await connection.execute(
            "INSERT INTO late_object SELECT $1 || lpad(to_hex(n), 32, '0'), service_time() - interval '1 hour', "
            "service_time() - interval '1 hour' FROM generate_series(1, $2) n",
            region,
            others,
        )
    assert (await here.client.delete(f"/api/geo/convert/jobs/{job_id}")).status_code == 204
    assert await here.stored() == 0
    async with here.services.database.connection() as connection:
        await connection.execute("DELETE FROM late_object")


async def test_a_preview_that_appears_after_its_result_has_gone_is_removed(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process may be suspended while storing one: the job has recorded the key, and the sweep looks again."""
    job_id = (await here.convert())["jobId"]
    storage = here.services.storage
    put = type(storage).put

    async def late(self: object, *arguments: object, **named: object) -> None:
        await here.advance(timedelta(hours=5))
        await sweep(here.services)
        await put(self, *arguments, **named)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(type(storage), "put", late)
    assert (await here.client.get(f"/api/geo/convert/jobs/{job_id}/preview")).status_code == 200
    assert await here.stored() == 1
    await here.advance(timedelta(minutes=2))
    await sweep(here.services)
    assert await here.stored() == 0
