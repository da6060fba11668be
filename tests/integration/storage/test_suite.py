"""What both stores do."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import anyio
import pytest

from service.errors import ObjectMissing
from service.storage.observed import copy_observed
from service.storage.port import MARK, MAX_LINK_LIFE, READ_BYTES, ObjectKey, new_key

from .conftest import REFUSED, MovableClock, Stage

CONTENT = bytes(range(256)) * 400
HOSTILE_NAMES = (
    'a";filename="b.exe".csv',
    "a\r\nX-Evil: 1\r\n\r\n.csv",
    "../../a/b\\c.csv",
    "..",
    "a\u202evsc.exe",
    "😀🗻" * 100 + ".csv",
    "n" * 300 + ".csv",
    "%2e%2e%2f%00%n%s.csv",
    "%",
    "a?b&X-Amz-Expires=9#c+d e;f.csv",
    "\udcff\x00\x1b[31m.csv",
)


async def test_what_was_put_is_what_a_link_gives(stage: Stage) -> None:
    """Bytes, length, type and name arrive as they were stored, without any key."""
    answer = await stage.get(await stage.put(CONTENT))
    assert answer.status_code == 200
    assert answer.content == CONTENT
    assert answer.headers["content-length"] == str(len(CONTENT))
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="roads.zip"'


async def test_what_was_put_is_read_in_pieces(stage: Stage) -> None:
    """In small pieces; a missing object is a failure of the store."""
    content = bytes(range(256)) * 4096
    pieces = [piece async for piece in stage.storage.read(await stage.put(content))]
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= READ_BYTES
    assert [piece async for piece in stage.storage.read(await stage.put(b""))] == []
    with pytest.raises(ObjectMissing):
        [piece async for piece in stage.storage.read(new_key())]


@pytest.mark.parametrize("size", [0, 1000, 1 << 20, (5 << 19) + 1])
async def test_what_was_put_is_copied_to_a_file(stage: Stage, tmp_path: Path, size: int) -> None:
    """Whole, whether it is written at once or in several parts; nothing replaces a file that is there."""
    content = (bytes(range(251)) * (size // 251 + 1))[:size]
    key, copy = await stage.put(content), tmp_path / "copy"
    await copy_observed(stage.storage.read(key), copy)
    assert copy.read_bytes() == content
    with pytest.raises(FileExistsError):
        await copy_observed(stage.storage.read(key), copy)


async def test_an_empty_file_is_a_file(stage: Stage) -> None:
    """It can be stored and fetched."""
    answer = await stage.get(await stage.put(b""))
    assert (answer.status_code, answer.content) == (200, b"")


async def test_a_name_beyond_ascii_arrives(stage: Stage) -> None:
    """The original base name reaches the client in UTF-8."""
    key = await stage.put(CONTENT)
    link = await stage.link(key, name="Straßen & Wege 道路.geojson", media_type="application/geo+json")
    answer = await stage.client.get(link.url)
    assert answer.status_code == 200
    encoded = "Stra%C3%9Fen%20%26%20Wege%20%E9%81%93%E8%B7%AF.geojson"
    assert answer.headers["content-disposition"].endswith(f"filename*=UTF-8''{encoded}")
    assert answer.headers["content-type"] == "application/geo+json"


async def test_no_name_ends_a_header_or_a_path(stage: Stage) -> None:
    """Whatever a name holds, a link to it works, names one file in a directory, and has the headers of any other."""
    key = await stage.put(CONTENT)
    ordinary = await stage.get(key)
    for name in HOSTILE_NAMES:
        answer = await stage.client.get((await stage.link(key, name=name)).url)
        assert (answer.status_code, answer.content) == (200, CONTENT), name
        assert answer.headers.keys() == ordinary.headers.keys(), name
        assert answer.headers["content-type"] == ordinary.headers["content-type"], name
        plain, _, encoded = answer.headers["content-disposition"].partition("; filename*=UTF-8''")
        saved = unquote(encoded) or plain.removeprefix('attachment; filename="').removesuffix('"')
        assert saved.isprintable(), name
        assert not set(saved) & set('/\\"'), name
        assert len(saved.encode()) < 256, name


async def test_head_tells_the_size_without_the_bytes(stage: Stage) -> None:
    """In a local store, a client may look before it fetches; an S3 signature covers the method and is for GET."""
    link = await stage.link(await stage.put(CONTENT))
    answer = await stage.client.head(link.url)
    assert (answer.status_code, answer.content) == (stage.head_status, b"")
    if answer.status_code == 200:
        assert answer.headers["content-length"] == str(len(CONTENT))


@pytest.mark.parametrize(
    ("asked", "start", "stop"), [("bytes=0-9", 0, 10), ("bytes=1000-", 1000, None), ("bytes=-7", -7, None)]
)
async def test_a_range_gives_that_part(stage: Stage, asked: str, start: int, stop: int | None) -> None:
    """An interrupted download can be resumed."""
    answer = await stage.get(await stage.put(CONTENT), {"range": asked})
    assert answer.content == CONTENT[start:stop]
    assert answer.headers["content-range"].endswith(f"/{len(CONTENT)}")


async def test_a_range_beyond_the_end_is_416(stage: Stage) -> None:
    """The response says that the range cannot be satisfied."""
    answer = await stage.get(await stage.put(CONTENT), {"range": f"bytes={len(CONTENT)}-"})
    assert answer.status_code == 416


async def test_a_client_that_has_the_file_is_told_so(stage: Stage) -> None:
    """If-None-Match with the current ETag costs no bytes."""
    key = await stage.put(CONTENT)
    etag = (await stage.get(key)).headers["etag"]
    answer = await stage.get(key, {"if-none-match": etag})
    assert (answer.status_code, answer.content) == (304, b"")
    assert (await stage.get(key, {"if-none-match": '"another"'})).content == CONTENT


async def test_a_link_expires_when_it_says(stage: Stage, clock: MovableClock) -> None:
    """Signed an hour ago for half an hour, it is refused by the store's clock."""
    key = await stage.put(CONTENT)
    clock.ahead = timedelta(hours=-1)
    link = await stage.link(key, lasts=timedelta(minutes=30))
    clock.ahead = timedelta()
    assert link.expires_at <= datetime.now(UTC) - timedelta(minutes=29)
    assert (await stage.client.get(link.url)).status_code in REFUSED


async def test_a_link_expires_in_real_seconds(stage: Stage) -> None:
    """No clock is moved here: the link works, and just after `expires_at` it does not."""
    key = await stage.put(CONTENT)
    link = await stage.link(key, lasts=timedelta(seconds=10))
    assert (await stage.client.get(link.url)).status_code == 200
    await anyio.sleep((link.expires_at - datetime.now(UTC)).total_seconds() + 0.5)
    assert (await stage.client.get(link.url)).status_code in REFUSED
    assert (await stage.get(key)).status_code == 200


async def test_no_link_promises_more_than_a_signature_can_keep(stage: Stage) -> None:
    """A month's retention gives a link for seven days, and `expires_at` says so."""
    key = await stage.put(CONTENT)
    link = await stage.link(key, lasts=timedelta(days=30))
    assert timedelta() <= stage.clock() + MAX_LINK_LIFE - link.expires_at <= timedelta(seconds=2)
    assert (await stage.client.get(link.url)).status_code == 200


@pytest.mark.parametrize("lasts", [timedelta(0), timedelta(milliseconds=1), timedelta(days=-1)])
async def test_there_is_no_link_for_a_time_that_is_over(stage: Stage, lasts: timedelta) -> None:
    """A link that could not work is not made."""
    clock = stage.clock()
    at = clock.replace(microsecond=0) + lasts
    key = new_key()
    assert await stage.storage.link(key, expires_at=at, download_name="a.zip", media_type="text/csv") is None


async def test_each_link_is_signed_afresh(stage: Stage, clock: MovableClock) -> None:
    """A job read later gives another link, and both work."""
    key = await stage.put(CONTENT)
    first = await stage.link(key)
    clock.ahead = timedelta(seconds=-30)
    second = await stage.link(key)
    assert first.url != second.url
    assert {(await stage.client.get(link.url)).status_code for link in (first, second)} == {200}


async def test_every_changed_character_of_a_link_is_refused(stage: Stage) -> None:
    """No character of path, parameters or signature can change in a link that opens this object or another."""
    key = await stage.put(CONTENT)
    url = (await stage.link(key, name="a b.zip")).url
    start = url.index("/", len("https://"))
    for place in range(start + 1, len(url)):
        old = url[place]
        if old in "/?&=%":
            continue
        changed = url[:place] + ("1" if old == "0" else "0") + url[place + 1 :]
        answer = await stage.client.get(changed)
        assert answer.status_code >= 400, changed
        assert CONTENT not in answer.content


async def test_a_link_opens_its_own_object_only(stage: Stage) -> None:
    """The signature of one object does not open another."""
    mine, other = await stage.put(b"mine"), await stage.put(b"another account's")
    url = (await stage.link(mine)).url
    assert (await stage.client.get(url.replace(mine, other))).status_code in REFUSED
    assert (await stage.client.get(url.partition("?")[0])).status_code in REFUSED


async def test_a_second_put_replaces_the_first(stage: Stage) -> None:
    """A repeated attempt at the same job ends with one object."""
    key = await stage.put(b"first")
    await stage.put(b"second", key)
    assert (await stage.get(key)).content == b"second"
    assert await stage.keys() == {key}


async def test_the_same_file_can_be_put_twice(stage: Stage, tmp_path: Path) -> None:
    """Even if the object is already that very file."""
    key, output = new_key(), tmp_path / "output"
    output.write_bytes(CONTENT)
    for _ in range(2):
        await stage.storage.put(key, output, media_type="application/zip", download_name="a.zip")
    output.unlink()
    assert (await stage.get(key)).content == CONTENT


async def test_deleting_twice_is_deleting_once(stage: Stage) -> None:
    """Deleting missing objects succeeds; other objects remain."""
    gone, kept = await stage.put(b"gone"), await stage.put(b"kept")
    for _ in range(2):
        await stage.storage.delete([gone, new_key()])
    await stage.storage.delete([])
    assert await stage.keys() == {kept}
    assert (await stage.get(gone)).status_code in {404, 410}  # of a bucket, or ours


async def test_the_list_holds_every_object_with_size_and_time(stage: Stage) -> None:
    """The audit compares this list with the jobs."""
    sizes: dict[ObjectKey, int] = {await stage.put(b"x" * size): size for size in (0, 1, 70_000)}
    found = [item async for item in stage.storage.objects()]
    assert {item.key: item.size_bytes for item in found} == sizes
    assert all(abs(datetime.now(UTC) - item.modified_at) < timedelta(minutes=1) for item in found)


async def test_marks_are_no_objects(stage: Stage) -> None:
    """Each database that uses a store has one there, which the audit must not take for a result."""
    mine, theirs = (f"{MARK}{new_key()}" for _ in range(2))
    assert not await stage.storage.has_mark("", mine)
    for mark in (mine, mine, theirs):
        await stage.storage.mark("", mark)
    assert await stage.storage.has_mark("", mine)
    assert await stage.storage.marks("") == {mine, theirs}
    assert await stage.keys() == set()


async def test_many_puts_at_once_all_arrive(stage: Stage, tmp_path: Path) -> None:
    """Sixty-four clients store concurrently, and each gets its own bytes."""
    expected = {new_key(): f"object {number}".encode() * 1000 for number in range(64)}

    async def put(key: ObjectKey, content: bytes) -> None:
        output = tmp_path / key
        output.write_bytes(content)
        await stage.storage.put(key, output, media_type="text/csv", download_name="a.csv")

    async with anyio.create_task_group() as group:
        for key, content in expected.items():
            group.start_soon(put, key, content)
    assert {key: (await stage.get(key)).content for key in expected} == expected


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Append the peak growth of this process in bytes during the block."""
    reset, grown = Path("/proc/self/clear_refs"), list[int]()
    if not reset.exists():
        pytest.skip("the peak of memory can be read on Linux only")
    reset.write_text("5")
    before = memory("VmRSS")
    yield grown
    grown.append(memory("VmHWM") - before)


def memory(name: str) -> int:
    """A memory figure of this process in bytes."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024


async def test_large_files_are_stored_in_little_memory(stage: Stage) -> None:
    """Three concurrent files of 40 MB make this process grow by less than one."""
    output = stage.directory / "large"
    with output.open("wb") as file:
        for number in range(40):
            file.write(bytes([number]) * (1 << 20))
    keys = [new_key() for _ in range(3)]

    async def put(key: ObjectKey) -> None:
        await stage.storage.put(key, output, media_type="application/zip", download_name="large.zip")

    with peak_memory() as grown:
        async with anyio.create_task_group() as group:
            for key in keys:
                group.start_soon(put, key)
    assert grown[0] < 30 << 20
    assert {found.size_bytes async for found in stage.storage.objects()} == {40 << 20}
    assert (await stage.get(keys[0], {"range": "bytes=-2"})).content == bytes([39, 39])


async def test_a_store_in_order_says_so(stage: Stage) -> None:
    """`check` succeeds, and leaves nothing behind."""
    await stage.storage.check()
    assert await stage.keys() == set()
