"""The local store: its disk, and the endpoint that serves its links."""

import gc
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import anyio.lowlevel
import pytest

from service.blocking import INLINE_BYTES
from service.storage.disk import Disk
from service.storage.local import THREADS, open_local
from service.storage.port import ObjectKey, new_key
from tests.support.descriptors import no_descriptor
from tests.support.small_disk import small_disk

from .conftest import SECRET, MovableClock, Stage, failing, gateway, local_stage

MIB = 1 << 20
CONTENT = bytes(range(256)) * 400


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A directory on another file system than the store's."""
    memory = Path("/dev/shm")  # noqa: S108 - wanted for what it is
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    with TemporaryDirectory(dir=memory) as directory:
        yield Path(directory)


@pytest.fixture
async def copying(tmp_path: Path, elsewhere: Path, clock: MovableClock) -> AsyncIterator[Stage]:
    """A local store whose outputs come from another file system."""
    async with local_stage(tmp_path / "store", clock, elsewhere) as stage:
        yield stage


def drafts(root: Path) -> list[Path]:
    """The partially written files in the store under `root`."""
    return list((root / "incoming").iterdir())


async def test_on_one_file_system_the_bytes_are_not_moved(local: Stage, tmp_path: Path) -> None:
    """The object is the converter's output under another name."""
    output = tmp_path / "output"
    output.write_bytes(CONTENT)
    key = new_key()
    await local.storage.put(key, output, media_type="text/csv", download_name="a.csv")
    (stored,) = [path for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file()]
    assert stored.samefile(output)
    assert drafts(tmp_path / "store") == []
    output.unlink()
    assert (await local.get(key)).content == CONTENT


async def test_from_another_file_system_the_bytes_are_copied(copying: Stage, tmp_path: Path) -> None:
    """The work directory may be in memory, for example."""
    key = await copying.put(CONTENT)
    assert (await copying.get(key)).content == CONTENT
    assert drafts(tmp_path / "store") == []


async def test_a_full_disk_fails_the_put_and_nothing_else(tmp_path: Path, clock: MovableClock) -> None:
    """Nothing partial remains, stored objects are kept, and once there is room the store works without a restart."""
    (tmp_path / "work").mkdir()
    with small_disk(tmp_path / "disk", kibibytes=4 << 10) as disk:
        async with local_stage(disk, clock, tmp_path / "work") as stage:
            kept = await stage.put(b"x" * MIB)
            large = await stage.put(b"x" * 2 * MIB)
            with failing("full"):
                await stage.put(b"x" * 3 * MIB)
            assert drafts(disk) == []
            assert await stage.keys() == {kept, large}
            await stage.storage.delete([large])
            assert (await stage.get(await stage.put(b"y" * 2 * MIB))).content == b"y" * 2 * MIB


@contextmanager
def file_size_limit(size_bytes: int) -> Iterator[None]:
    """Limit the size of files that this process can write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("size_bytes", "limit_bytes"), [(3 * MIB, MIB), (MIB // 2, MIB // 4), (MIB + MIB // 2, MIB + MIB // 4)]
)
async def test_a_file_beyond_what_the_system_allows_leaves_nothing(
    copying: Stage, elsewhere: Path, tmp_path: Path, size_bytes: int, limit_bytes: int
) -> None:
    """The same without a small disk: a write is cut short, possibly the last one."""
    output = elsewhere / "large"
    output.write_bytes(b"x" * size_bytes)
    with failing("full"), file_size_limit(limit_bytes):
        await copying.storage.put(new_key(), output, media_type="text/csv", download_name="a.csv")
    assert drafts(tmp_path / "store") == []
    assert await copying.keys() == set()


@pytest.mark.parametrize("size_bytes", [1, 2 * INLINE_BYTES])
async def test_an_output_that_cannot_be_opened_leaves_no_object(local: Stage, tmp_path: Path, size_bytes: int) -> None:
    """This process has as many files open as it may."""
    output = tmp_path / "output"
    output.write_bytes(b"x" * size_bytes)
    with failing("down"), no_descriptor():
        await local.storage.put(new_key(), output, media_type="text/csv", download_name="a.csv")
    assert await local.keys() == set()


def open_here(path: Path) -> bool:
    """Whether this process has the file open."""
    return any(link.samefile(path) for link in Path("/proc/self/fd").iterdir() if link.exists())


def block_until_open_here(path: Path) -> None:
    """Wait for another thread to open the file, and keep the event loop from hearing of it."""
    while not open_here(path):
        time.sleep(0.001)


async def test_a_reader_that_is_cancelled_while_its_file_opens_leaves_it_closed(local: Stage, tmp_path: Path) -> None:
    """Not only when the garbage collector finds it, which warns of it."""
    key = await local.put(CONTENT)
    (path,) = [path for path in (tmp_path / "store" / "objects").rglob("*") if path.is_file()]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anext, local.storage.read(key))
            await anyio.lowlevel.checkpoint()
            block_until_open_here(path)
            tasks.cancel_scope.cancel()
        gc.collect()
    assert not open_here(path)
    assert [each for each in heard if each.category is ResourceWarning] == []


async def test_a_put_that_is_cancelled_before_a_thread_has_time_for_it_leaves_nothing_open(tmp_path: Path) -> None:
    """What it has placed already is closed, though no thread has synced it."""
    output, let_go = tmp_path / "output", Event()
    output.write_bytes(CONTENT)
    async with open_local(tmp_path / "store", [SECRET]) as storage, anyio.create_task_group() as others:
        for _ in range(THREADS):
            others.start_soon(storage.run, let_go.wait)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(storage.put, media_type="text/csv", download_name="a.csv"), new_key(), output)
            await anyio.lowlevel.checkpoint()
            assert open_here(output)
            tasks.cancel_scope.cancel()
        is_open = open_here(output)
        let_go.set()
    assert not is_open


async def test_readiness_tells_before_the_disk_is_full(tmp_path: Path) -> None:
    """With less room than current conversions may need, the store is not ready."""
    async with open_local(tmp_path, [SECRET], min_free_bytes=1 << 60) as storage:
        with failing("full"):
            await storage.check()


async def test_a_disk_that_went_away_is_found_and_comes_back(local: Stage, tmp_path: Path) -> None:
    """An unmounted directory fails puts, downloads and readiness, and says of no result that it has been deleted."""
    key = await local.put(CONTENT)
    (tmp_path / "store").rename(tmp_path / "away")
    with failing("down"):
        await local.put(CONTENT)
    with failing("down"):
        await local.storage.check()
    away = await local.get(key)
    assert (away.status_code, "Try again" in away.text) == (503, True)
    (tmp_path / "away").rename(tmp_path / "store")
    await local.storage.check()
    assert (await local.get(key)).content == CONTENT


async def test_directories_that_someone_has_removed_are_made_again(local: Stage, tmp_path: Path) -> None:
    """All that was stored is gone, and said to be; nothing needs a restart."""
    for is_shard in (True, False):
        key = await local.put(CONTENT)
        shutil.rmtree(tmp_path / "store" / "objects" / key[: 2 * is_shard])
        shutil.rmtree(tmp_path / "store" / "incoming")
        assert (await local.get(key)).status_code == 410
        with failing("down"):  # else all results would seem to be gone while the directory is restored
            await local.keys()
        await local.storage.check()
        assert await local.keys() == set()
        assert {found.stat().st_mode & 0o777 for found in (tmp_path / "store").rglob("*") if found.is_dir()} == {0o700}
        key = await local.put(CONTENT)
        assert (await local.get(key)).content == CONTENT


async def test_directories_are_not_made_below_a_disk_that_is_not_mounted(tmp_path: Path) -> None:
    """What would be stored there would be hidden, and lost, once the disk is back."""
    (tmp_path / "output").touch()
    with small_disk(tmp_path / "store", 4096):
        disk = Disk(tmp_path / "store")
        disk.prepare()
    with pytest.raises(FileNotFoundError):
        disk.store(new_key(), tmp_path / "output")
    assert list((tmp_path / "store").iterdir()) == []


async def test_a_store_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    """A file in place of the directory is reported at once."""
    (tmp_path / "file").write_text("")
    with failing("down"):
        async with open_local(tmp_path / "file" / "store", [SECRET]):
            pass


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
async def test_only_a_regular_file_is_stored(local: Stage, tmp_path: Path, kind: str) -> None:
    """A symbolic link that a hostile program left in place of its output is not followed."""
    secret, output = tmp_path / "secret", tmp_path / "output"
    secret.write_text("not for clients")
    make: dict[str, Callable[[], None]] = {
        "link": lambda: output.symlink_to(secret),
        "pipe": lambda: os.mkfifo(output),
        "directory": output.mkdir,
    }
    make[kind]()
    with pytest.raises((OSError, ValueError)):
        await local.storage.put(new_key(), output, media_type="text/csv", download_name="a.csv")
    assert await local.keys() == set()


@pytest.mark.usefixtures("local")
def test_nobody_else_on_the_host_can_look_into_it(tmp_path: Path) -> None:
    """The directories belong to the service alone."""
    for directory in ("store", "store/objects", "store/objects/00", "store/incoming"):
        assert stat.S_IMODE((tmp_path / directory).stat().st_mode) == 0o700


def kill_while_it_writes(command: list[str], root: Path) -> None:
    """Start it, and kill it as soon as part of a file is in the store."""
    writer = subprocess.Popen(command)
    try:
        while not (root / "incoming").exists() or not any(path.stat().st_size for path in drafts(root)):
            assert writer.poll() is None
            time.sleep(0.01)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()


async def test_kill_9_in_the_middle_leaves_no_object(tmp_path: Path, elsewhere: Path) -> None:
    """A partial copy never has an object's name; a later start removes it once no process can still be writing it."""
    source, root = elsewhere / "endless", tmp_path / "store"
    with source.open("wb") as file:
        file.truncate(8 << 30)
    kill_while_it_writes([sys.executable, "-c", WRITER, str(root), str(source), new_key()], root)
    (draft,) = drafts(root)
    async with open_local(root, [SECRET]) as storage:
        assert [found async for found in storage.objects()] == []
        assert drafts(root) == [draft]
        os.utime(draft, (0, 0))
    async with open_local(root, [SECRET]):
        assert drafts(root) == []


WRITER = """
import asyncio, sys
from pathlib import Path
from service.storage.local import open_local

async def main(root, source, key):
    async with open_local(Path(root), [b"s" * 32]) as storage:
        await storage.put(key, Path(source), media_type="text/csv", download_name="a.csv")

asyncio.run(main(*sys.argv[1:]))
"""


async def test_two_servers_share_one_store(tmp_path: Path, clock: MovableClock) -> None:
    """What one process stored and linked, another one serves."""
    (tmp_path / "work").mkdir()
    async with local_stage(tmp_path / "store", clock, tmp_path / "work") as one:
        link = await one.link(await one.put(CONTENT))
        async with local_stage(tmp_path / "store", clock, tmp_path / "work") as other:
            assert (await other.client.get(link.url)).content == CONTENT


async def test_there_are_no_regions(local: Stage) -> None:
    """A key with a region belongs to another store."""
    assert local.storage.regions == frozenset()
    with failing("misconfigured"):
        await local.put(CONTENT, new_key("eu"))
    with failing("misconfigured"):
        await local.storage.check("eu")


async def test_what_is_no_object_is_not_listed(local: Stage, tmp_path: Path) -> None:
    """Files that somebody else put there are not reported."""
    (tmp_path / "store" / "objects" / "00" / "README").write_text("hello")
    assert await local.keys() == set()


async def test_a_link_is_relative_to_where_the_client_reached_us(local: Stage) -> None:
    """The store does not know the service's address."""
    link = await local.link(await local.put(CONTENT))
    assert link.url.startswith("/files/")


async def test_an_answer_is_never_taken_for_a_page(local: Stage) -> None:
    """Content from strangers is saved, neither displayed nor sniffed nor cached for others."""
    headers = (await local.get(await local.put(b"<script>alert(1)</script>"))).headers
    assert headers["content-disposition"].startswith("attachment;")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert headers["cache-control"] == "private, no-cache"
    assert headers["accept-ranges"] == "bytes"


async def test_a_partial_answer_says_so(local: Stage) -> None:
    """206 with the range, several ranges as multipart, 304 without a body."""
    key = await local.put(CONTENT)
    single = await local.get(key, {"range": "bytes=10-19"})
    assert (single.status_code, single.content) == (206, CONTENT[10:20])
    assert single.headers["content-range"] == f"bytes 10-19/{len(CONTENT)}"
    several = await local.get(key, {"range": "bytes=0-1,10-11"})
    assert several.status_code == 206
    assert several.headers["content-type"].startswith("multipart/byteranges")


async def test_a_range_of_another_version_is_the_whole(local: Stage) -> None:
    """If-Range prevents a resumed download from mixing two files."""
    key = await local.put(CONTENT)
    etag = (await local.get(key)).headers["etag"]
    same = await local.get(key, {"range": "bytes=0-9", "if-range": etag})
    other = await local.get(key, {"range": "bytes=0-9", "if-range": '"another"'})
    assert (same.status_code, other.status_code) == (206, 200)
    assert other.content == CONTENT


@pytest.mark.parametrize("form", ["{}", "W/{}", '"x", {}', "*"])
async def test_every_form_of_if_none_match_is_understood(local: Stage, form: str) -> None:
    """Weak tags, lists and the asterisk."""
    key = await local.put(CONTENT)
    answer = await local.get(key, {"if-none-match": form.format(f'"{key}"')})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == f'"{key}"'


async def test_the_etag_is_the_same_on_every_link(local: Stage) -> None:
    """An object never changes, so its key is its version."""
    key = await local.put(CONTENT)
    assert [(await local.get(key)).headers["etag"] for _ in range(2)] == [f'"{key}"'] * 2


async def test_bytes_that_are_no_text_are_refused(local: Stage) -> None:
    """A query that no browser sends is an invalid link rather than a defect of the service."""
    link = await local.link(await local.put(CONTENT))
    scope = {
        "type": "http",
        "method": "GET",
        "path": link.url.partition("?")[0],
        "headers": [],
        "query_string": b"\xff=",
    }
    answers: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        answers.append(message)

    await gateway(local.storage)(scope, None, send)
    assert answers[0]["status"] == 403


async def test_an_object_that_was_deleted_is_gone(local: Stage) -> None:
    """A link to a removed object gets a clear response."""
    link = await local.link(ObjectKey("ab" * 16))
    answer = await local.client.get(link.url)
    assert answer.status_code == 410
    assert "Convert the file again" in answer.text


async def test_each_refusal_says_what_to_do(local: Stage, clock: MovableClock) -> None:
    """403 for an altered link, 410 for an expired one."""
    link = await local.link(await local.put(CONTENT))
    forged = await local.client.get(link.url.replace("expires=1", "expires=2"))
    assert (forged.status_code, "exactly as returned" in forged.text) == (403, True)
    clock.ahead += link.expires_at - clock()
    late = await local.client.get(link.url)
    assert (late.status_code, "has expired" in late.text) == (410, True)
