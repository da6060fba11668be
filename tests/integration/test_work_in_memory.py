"""Small uploads and their outputs are in memory during conversion, and the outcome is the same."""

import gzip
import io
import os
import shutil
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from service.engine.files import write_for_runs
from service.errors import NoRoom, Overloaded
from service.intake.areas import claim_area
from service.intake.files import IncomingFile
from service.intake.memory import memory_path, memory_root
from service.intake.workspace import open_work_area
from service.usecases import run_job
from tests.support.data import lakes
from tests.support.patience import until
from tests.support.small_disk import remount, small_disk
from tests.support.world import world

SHARED_MEMORY = "/dev/shm"  # noqa: S108 -- where the service makes a directory of its own
PADDING = 400_000

pytestmark = pytest.mark.skipif(not os.access(SHARED_MEMORY, os.W_OK), reason="no file system in memory")


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.geojson", content)
    return packed.getvalue()


@asynccontextmanager
async def watched(directory: Path) -> AsyncIterator[set[str]]:
    """Collect the roots in which files appeared."""
    roots = {"disk": directory / "work" / "uploads", "memory": memory_path(SHARED_MEMORY, directory)}
    seen: set[str] = set()

    async def watch() -> None:
        while True:
            seen.update(name for name, root in roots.items() if any(root.glob("*/*")))
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        yield seen
        tasks.cancel_scope.cancel()
    assert not [path for root in roots.values() for path in root.glob("*/*")]


async def test_a_small_file_is_converted_in_memory_and_a_larger_one_on_disk(database_url: str, tmp_path: Path) -> None:
    """The request's declared length decides."""
    async with world(database_url, tmp_path) as here:
        await here.services.pool.complete_report()  # testing a server at its first use needs directories, too
        async with watched(tmp_path) as seen:
            await here.convert()
        assert seen == {"memory"}
        async with watched(tmp_path) as seen:
            files = {"file": ("a.geojson", lakes() + b" " * PADDING)}
            answer = (await here.client.post("/api/geo/convert/upload", files=files)).json()
        assert answer["success"], answer
        assert seen == {"disk"}
    assert not memory_path(SHARED_MEMORY, tmp_path).exists()


async def test_a_result_has_its_part_of_the_disk_until_its_job_has_ended(database_url: str, tmp_path: Path) -> None:
    """Hundreds may wait for a slow store."""
    content = lakes() + b" " * PADDING
    async with world(database_url, tmp_path) as here:
        space = here.services.work_area.space
        answers: list[httpx.Response] = []

        async def convert() -> None:
            files = {"file": ("a.geojson", content)}
            answers.append(await here.client.post("/api/geo/convert/upload", files=files))

        async with anyio.create_task_group() as tasks, here.services.database.transaction() as holding:
            await holding.execute("LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE")
            tasks.start_soon(convert)
            await until(lambda: any(share.written_bytes > len(content) for share in space.shares.values()))
            [occupied] = [share.size_bytes for share in space.shares.values()]
        assert occupied == len(content) + answers[0].json()["outputSizeBytes"]
        assert space.shares == {}


@pytest.mark.parametrize("padding", [0, PADDING])
async def test_an_archive_is_converted_on_disk_if_it_unpacks_to_more_than_little(
    database_url: str, tmp_path: Path, padding: int
) -> None:
    """However small it is itself, and whether it is converted or analyzed; the outcome is the same."""
    files = {"file": ("a.zip", zipped(lakes() + b" " * padding))}
    async with world(database_url, tmp_path) as here:
        await here.services.pool.complete_report()
        async with watched(tmp_path) as seen:
            answer = (await here.client.post("/api/geo/convert/upload", files=files)).json()
        assert answer["success"], answer
        assert answer["featureCount"] == (await here.convert())["featureCount"]
        assert ("disk" in seen) == bool(padding)
        async with watched(tmp_path) as seen:
            analysis = (await here.client.post("/api/geo/convert/analyze", files=files)).json()
        assert analysis["success"], analysis
        assert ("disk" in seen) == bool(padding)


async def test_a_gz_goes_to_disk_whatever_its_size(database_url: str, tmp_path: Path) -> None:
    """It does not say how much it unpacks to."""
    async with world(database_url, tmp_path) as here:
        await here.services.pool.complete_report()
        async with watched(tmp_path) as seen:
            files = {"file": ("a.geojson.gz", gzip.compress(lakes()))}
            answer = (await here.client.post("/api/geo/convert/upload", files=files)).json()
        assert answer["success"], answer
        assert seen == {"disk"}


async def test_what_outgrows_its_memory_is_converted_on_disk(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is the same, one conversion is counted, and nothing is left in either place."""
    async with world(database_url, tmp_path) as here:
        expected = await here.convert()
        monkeypatch.setattr(run_job, "MEMORY_BYTES", 400)
        async with watched(tmp_path) as seen:
            answer = await here.convert()
        assert seen == {"memory", "disk"}
        balance = await here.services.ledger.balance(here.account.account_id)
    told = ("featureCount", "outputSizeBytes", "geometryType", "warnings", "truncationReport")
    assert [answer.get(name) for name in told] == [expected.get(name) for name in told]
    assert balance.used_conversions == 2


async def test_without_a_directory_in_memory_all_lies_on_disk(database_url: str, tmp_path: Path) -> None:
    """Whether there is none or none is wanted."""
    for place in ("", str(tmp_path / "nowhere")):
        async with world(database_url, tmp_path / "data", settings={"memory_dir": place}) as here:
            async with watched(tmp_path / "data") as seen:
                await here.convert()
            assert seen == {"disk"}


@pytest.mark.parametrize("harm", ["ro", "rw,nr_inodes={files}"])
async def test_while_the_directory_in_memory_takes_nothing_all_lies_on_disk(
    database_url: str, tmp_path: Path, harm: str
) -> None:
    """Whether it has become read-only or has no room for files; afterwards it is used again."""
    with small_disk(tmp_path / "memory", 300 << 10, files=10_000) as memory:
        async with world(database_url, tmp_path / "data", settings={"memory_dir": str(memory)}) as here:
            await here.services.pool.complete_report()
            room = os.statvfs(memory)
            remount(memory, harm.format(files=room.f_files - room.f_ffree))
            await here.convert()
            remount(memory, "rw,nr_inodes=10k")
            (made,) = memory.glob("geomill-*/[0-9a-f]*")
            before = made.stat().st_mtime_ns
            await here.convert()
            assert made.stat().st_mtime_ns > before


async def test_a_directory_in_memory_that_others_remove_is_not_missed(database_url: str, tmp_path: Path) -> None:
    """The system may remove what a user has in shared memory when that user logs out."""
    (tmp_path / "memory").mkdir()
    async with world(database_url, tmp_path / "data", settings={"memory_dir": str(tmp_path / "memory")}) as here:
        await here.services.pool.complete_report()
        (root,) = (tmp_path / "memory").iterdir()
        shutil.rmtree(root)
        await here.convert()


async def test_an_upload_for_a_disk_that_has_become_read_only_may_be_sent_again(tmp_path: Path) -> None:
    """It is refused as one for a full disk is, and a conversion ends as it does there."""
    with small_disk(tmp_path / "disk", 4096) as disk:
        async with open_work_area(disk) as area:
            directory = area.new_directory()
            remount(disk, "ro")
            with pytest.raises(Overloaded):
                area.new_directory()
            file = IncomingFile(directory, "a.geojson", max_bytes=10, hashed=False)
            file.add(b"x")
            with pytest.raises(Overloaded):
                file.write_out()
            with pytest.raises(NoRoom):
                write_for_runs(directory / "planned", "x")
            remount(disk, "rw")
            await area.remove(directory)


def test_a_directory_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    """In a shared directory, another user may have taken the name."""
    path = memory_path(str(tmp_path), tmp_path / "data")
    path.symlink_to(tmp_path)
    assert memory_root(str(tmp_path), tmp_path / "data") is None
    path.unlink()
    if os.geteuid() == 0:
        path.mkdir()
        os.chown(path, 65534, 65534)
        assert memory_root(str(tmp_path), tmp_path / "data") is None
        os.chown(path, 0, 0)
    assert memory_root(str(tmp_path), tmp_path / "data") == path


async def test_the_directory_stays_while_another_process_uses_it(tmp_path: Path) -> None:
    """Servers with the same data directory share it."""
    root = memory_root(SHARED_MEMORY, tmp_path)
    assert root is not None
    path, lock = claim_area(root)
    try:
        async with open_work_area(tmp_path / "uploads", root):
            pass
        assert path.exists()
    finally:
        os.close(lock)
    async with open_work_area(tmp_path / "uploads", root):
        assert not path.exists()
    assert not root.exists()
