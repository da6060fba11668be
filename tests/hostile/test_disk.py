"""Files that take gigabytes of the disk: as they are, unpacked, or in files that no directory names."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sandbox.command import MIB
from service.accounts.administration import Terms
from service.usecases.detect_format import UNPACKED
from tests.hostile.bait import laid_out
from tests.hostile.databases import VIEW, geopackage
from tests.hostile.packing import packed
from tests.sandbox.processes import processes_below
from tests.support.data import lakes
from tests.support.endless import NAME, endless_file
from tests.support.patience import polls
from tests.support.server import Client, Server, create_account, running_server
from tests.support.small_disk import small_disk
from tests.support.tuned import tuned

TEAM = Terms(plan="team", plan_owner="organization")
SORTED = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000000)"
    " SELECT x AS fid, hex(zeroblob(500)) || x AS a FROM n ORDER BY x % 1000, a"
)
"""Four gigabytes to be sorted, which SQLite does in files that it deletes as soon as they are open."""
MOST_BYTES = 128 * MIB
BETWEEN_TWO_LOOKS = 64 * MIB


@pytest.fixture
def server(tmp_path: Path, database_url: str) -> Iterator[Server]:
    """A service whose runs may hold little."""
    program = tuned(Limits={"directory_bytes": MOST_BYTES})
    settings = {"GEOMILL_CONVERTERS": "2", "GEOMILL_MEMORY_DIR": ""}
    with running_server(tmp_path, database_url, settings, program=program) as running:
        yield running


def held_bytes(pid: int) -> int:
    """What a process holds in files that no directory names."""
    held = 0
    with suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            status = path.stat()
            held += status.st_blocks * 512 if status.st_nlink == 0 else 0
    return held


def most_held(server: Server, done: Event) -> int:
    """The most that any process of the service is seen to hold until it is done."""
    most = 0
    while not done.is_set():
        processes = processes_below(server.process.pid)  # which takes longer to find out than what they hold
        for _ in range(20):
            most = max([most, *map(held_bytes, processes)])
            done.wait(0.005)
    return most


def test_what_sorting_takes_of_the_disk_is_bounded(server: Server) -> None:
    """The client learns that the file is too large; others are served meanwhile and afterwards."""
    with laid_out() as bait:
        content = geopackage(VIEW + SORTED + ";")(bait)
    assert len(content) < 100_000
    with (
        ThreadPoolExecutor(2) as threads,
        create_account(server, TEAM, "heavy") as heavy,
        create_account(server, TEAM, "light") as light,
    ):
        most = 0
        for _ in polls():  # again, if the host was too busy to see what the run held, or to look at it in time
            done = Event()
            seen = threads.submit(most_held, server, done)
            sent = threads.submit(Client.convert, heavy, "a.gpkg", content, outputFormat="Csv")
            while not sent.done():
                assert light.convert("lakes.geojson", lakes(), outputFormat="Csv")["success"]
            done.set()
            answer = sent.result()
            assert not answer["success"]
            assert "larger than" in answer["error"]
            if MOST_BYTES // 2 < (most := seen.result()) < MOST_BYTES + BETWEEN_TWO_LOOKS:
                break
        assert MOST_BYTES // 2 < most < MOST_BYTES + BETWEEN_TWO_LOOKS
        assert light.convert("lakes.geojson", lakes(), outputFormat="Csv")["success"]
        assert heavy.usage() == (0, 0)
    assert server.wait_until_idle() == []


@pytest.mark.parametrize("without", [[], ["namespaces"]], ids=["every layer", "no namespaces"])
def test_what_is_sorted_on_the_disk_is_converted(tmp_path: Path, database_url: str, without: list[str]) -> None:
    """Where runs see /var/tmp, in which they cannot write, SQLite took it, and the file seemed to be damaged."""
    settings = {"GEOMILL_CONVERTERS": "1", "GEOMILL_SANDBOX": "best-effort"}
    with laid_out() as bait:
        content = geopackage(VIEW + SORTED.replace("4000000", "20000") + ";")(bait)
    program = tuned(Config={"without": without})
    with (
        running_server(tmp_path, database_url, settings, program=program) as server,
        create_account(server, TEAM, "sorting") as client,
    ):
        answer = client.convert("a.gpkg", content, outputFormat="Csv")
        assert answer["success"], answer["error"]
        assert answer["featureCount"] == 20_000


UNPACKED_BYTES, DISK_KIBIBYTES, UPLOADS = 20 * MIB, 192 << 10, 12
"""Together, the uploads unpack to more than the disk holds."""


@pytest.fixture
def small(tmp_path: Path, database_url: str) -> Iterator[Server]:
    """A service with a small disk, and one converter."""
    settings = {"GEOMILL_CONVERTERS": "1", "GEOMILL_MEMORY_DIR": ""}
    with (
        small_disk(tmp_path / "disk", DISK_KIBIBYTES) as disk,
        running_server(disk / "data", database_url, settings) as running,
    ):
        yield running


@contextmanager
def watched(server: Server) -> Iterator[None]:
    """Check that at least a third of what is free on its disk now stays free until the end of the block."""
    free = least = shutil.disk_usage(server.data_dir).free
    done = Event()

    def watch() -> None:
        nonlocal least
        while not done.wait(0.005):
            least = min(least, shutil.disk_usage(server.data_dir).free)

    with ThreadPoolExecutor(1) as threads:
        watching = threads.submit(watch)
        try:
            yield
        finally:
            done.set()
        watching.result()
    assert least > free // 3


@contextmanager
def busy(server: Server) -> Iterator[tuple[Client, Client, str]]:
    """Two accounts, and the job of the first one that has the only converter for ever; the disk is `watched`."""
    with (
        create_account(server, TEAM, "heavy") as heavy,
        create_account(server, TEAM, "light") as light,
        watched(server),
    ):
        later = {"Prefer": "respond-async"}
        yield heavy, light, heavy.convert(NAME, endless_file(), headers=later, outputFormat="Csv")["jobId"]


def padded(name: str, size_bytes: int) -> bytes:
    """A ZIP of some kilobytes around a document of that size."""
    return packed({name: lakes() + b" " * (size_bytes - len(lakes()))})


def test_what_uploads_unpack_to_does_not_fill_the_disk(small: Server) -> None:
    """They wait for each other, not for a converter, while another account's are converted; then all are."""
    content = padded("lakes.geojson", UNPACKED_BYTES)
    with busy(small) as (heavy, light, endless), ThreadPoolExecutor(UPLOADS) as threads:
        sent = [threads.submit(heavy.convert, "a.zip", content, outputFormat="Csv") for _ in range(UPLOADS)]
        assert any(len(list(small.data_dir.rglob(UNPACKED))) >= 2 for _ in polls())
        for _ in range(3):
            assert light.convert("a.zip", padded("lakes.geojson", UNPACKED_BYTES // 2), outputFormat="Csv")["success"]
        assert not any(each.done() for each in sent)
        assert heavy.delete(f"/api/geo/convert/jobs/{endless}").status_code == HTTPStatus.NO_CONTENT
        assert all(each.result()["success"] for each in sent)
        assert heavy.usage()[0] == UPLOADS
    assert small.wait_until_idle() == []


PLAIN_BYTES = 16 * MIB


def form(content: bytes) -> dict[str, Any]:
    """A form whose length httpx declares."""
    return {"files": {"file": ("lakes.geojson", content)}, "data": {"outputFormat": "Csv"}}


def stream(content: bytes) -> dict[str, Any]:
    """The same form in chunks, without a length."""
    before = b'--b\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n'
    field = before % (b"outputFormat", b"") + b"Csv\r\n"
    body = [field, before % (b"file", b'; filename="lakes.geojson"'), content, b"\r\n--b--\r\n"]
    return {"content": iter(body), "headers": {"Content-Type": "multipart/form-data; boundary=b"}}


@pytest.mark.parametrize("sent_as", [form, stream])
def test_uploads_do_not_fill_the_disk(small: Server, sent_as: Callable[[bytes], dict[str, Any]]) -> None:
    """Those of one account for which there is no space are refused and cost nothing; another's are converted."""
    content = lakes() + b" " * (PLAIN_BYTES - len(lakes()))
    with busy(small) as (heavy, light, endless), ThreadPoolExecutor(UPLOADS) as threads:
        sent = [threads.submit(lambda: heavy.post("/api/geo/convert/file", **sent_as(content))) for _ in range(UPLOADS)]
        assert any(sum(each.done() for each in sent) >= UPLOADS - 3 for _ in polls())
        for _ in range(3):
            assert light.convert("lakes.geojson", content[: PLAIN_BYTES // 2], outputFormat="Csv")["success"]
        assert heavy.delete(f"/api/geo/convert/jobs/{endless}").status_code == HTTPStatus.NO_CONTENT
        answers = [each.result() for each in sent]
        refused = [each for each in answers if each.status_code == HTTPStatus.SERVICE_UNAVAILABLE]
        assert 0 < len(refused) < UPLOADS
        assert all(int(each.headers["Retry-After"]) and "no space" in each.json()["detail"] for each in refused)
        converted = [each.json()["success"] for each in answers if each not in refused]
        assert all(converted)
        assert heavy.usage()[0] == len(converted)
        assert heavy.convert("lakes.geojson", content, outputFormat="Csv")["success"]
    assert small.wait_until_idle() == []


@pytest.mark.parametrize(("target", "converted"), [("GeoJson", False), ("Csv", True)])
def test_a_batch_leaves_space_for_its_later_files(small: Server, target: str, *, converted: bool) -> None:
    """Files that are refused do not keep theirs until the end of the request."""
    files = [("a.zip", padded("lakes.geojson", UNPACKED_BYTES))] * UPLOADS
    with create_account(small, TEAM, "heavy") as heavy, watched(small):
        answer = heavy.batch(*files, outputFormats=[target] * UPLOADS)
        assert [each["success"] for each in answer["results"]] == [converted] * UPLOADS
    assert small.wait_until_idle() == []
