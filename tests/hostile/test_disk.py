"""A file of some kilobytes whose reading takes gigabytes of the disk, in files that no directory names."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from sandbox.command import MIB
from service.accounts.administration import Terms
from tests.hostile.bait import laid_out
from tests.hostile.databases import VIEW, geopackage
from tests.sandbox.processes import processes_below
from tests.support.data import lakes
from tests.support.patience import polls
from tests.support.server import Client, Server, create_account, running_server
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
