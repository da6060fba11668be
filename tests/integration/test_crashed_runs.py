"""A run that a signal ends, or that the sandbox loses, does not prove its file faulty: it is begun anew once."""

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from prometheus_client import REGISTRY

from service.usecases.pipeline import LOST
from tests.sandbox.processes import command_line, parent_of, processes_below, state_of
from tests.support.data import collection, feature, point
from tests.support.world import World, world

FEATURES = 60_000
FOLDER = "convert"
OUTPUTS = "out"


@pytest.fixture(scope="module")
def document() -> bytes:
    """A file that takes the converter a moment."""
    return collection(*(feature(point(n % 180, n % 80), n=n, name=f"place {n}") for n in range(FEATURES)))


@asynccontextmanager
async def killing(times: int, victim: Callable[[int], int] = int) -> AsyncIterator[list[int]]:
    """Kill up to `times` converters while they write a result; `victim` selects the process; yields their ids.

    Each converter is stopped first, so that it cannot end its work before the signal is sent.
    """
    killed: list[int] = []

    async def kill() -> None:
        while len(killed) < times:
            for pid in processes_below() - set(killed):
                if b"ogr2ogr" in command_line(pid) and has_written(Path(f"/proc/{pid}/cwd")) and await is_stopped(pid):
                    os.kill(victim(pid), signal.SIGKILL)
                    killed.append(pid)
                    break
            await anyio.sleep(0.002)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        yield killed
        tasks.cancel_scope.cancel()


async def is_stopped(pid: int) -> bool:
    """Stop a process; return whether it was stopped before it ended."""
    state = ""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        while (state := state_of(pid)) not in {"T", "Z", "X"}:  # noqa: ASYNC110 - the kernel does it
            await anyio.sleep(0.002)
    return state == "T"


def spawner(pid: int) -> int:
    """The process that started the run; tests in this process may share other sandboxes."""
    while b"sandbox.process.keeper" not in command_line(pid):
        pid = parent_of(pid)
    return pid


def has_written(directory: Path) -> bool:
    """Whether this is the directory of a run with a partial result."""
    try:
        return directory.readlink().name == FOLDER and any(path.is_file() for path in (directory / OUTPUTS).rglob("*"))
    except OSError:
        return False


async def convert(here: World, document: bytes, **headers: str) -> dict[str, Any]:
    """Convert to Shapefile."""
    files = {"file": ("a.geojson", document)}
    response = await here.client.post("/api/geo/convert/file", files=files, headers=headers, timeout=60)
    answer: dict[str, Any] = response.json()
    return answer


async def left_by_runs(here: World, data_dir: Path) -> list[Path]:
    """What is left in the work directory once each run has ended: clients may hear of the end a moment before."""
    while here.services.runner.active:  # noqa: ASYNC110 -- nothing announces it
        await anyio.sleep(0.01)
    return list((data_dir / "work" / "uploads").glob("*/*"))


def retries() -> float:
    """How many runs were begun anew."""
    return REGISTRY.get_sample_value("geomill_converter_retries_total") or 0.0


@pytest.mark.parametrize("victim", [int, spawner])
async def test_a_run_that_is_killed_is_begun_anew(
    database_url: str, tmp_path: Path, document: bytes, victim: Callable[[int], int]
) -> None:
    """It ends as if no process had been killed, is charged once, and leaves no partial result."""
    async with world(database_url, tmp_path, plan="team") as here:
        expected = await convert(here, document)
        before = retries()
        async with killing(1, victim) as killed:
            answer = await convert(here, document)
        assert len(killed) == 1
        assert retries() == before + 1
        balance = await here.services.ledger.balance(here.account.account_id)
        assert not await left_by_runs(here, tmp_path)
    assert answer["success"], answer
    told = ("featureCount", "outputSizeBytes", "geometryType", "warnings", "truncationReport")
    assert [answer.get(name) for name in told] == [expected.get(name) for name in told]
    assert balance.used_conversions == 2


async def test_a_file_on_which_the_converter_crashes_twice_is_at_fault(
    database_url: str, tmp_path: Path, document: bytes
) -> None:
    """The client learns that the file is the cause, and nothing is charged."""
    async with world(database_url, tmp_path, plan="team") as here:
        before = retries()
        async with killing(2) as killed:
            answer = await convert(here, document)
        assert len(killed) == 2
        assert retries() == before + 1
        balance = await here.services.ledger.balance(here.account.account_id)
        assert not await left_by_runs(here, tmp_path)
    assert not answer["success"]
    assert "crashed" in answer["error"]
    assert balance.used_conversions == 0


async def test_a_file_whose_run_was_lost_twice_is_converted_by_a_repeat(
    database_url: str, tmp_path: Path, document: bytes
) -> None:
    """The sandbox is the cause, so the failure is no response to the repeat, under the same key either."""
    key = {"Idempotency-Key": "k"}
    async with world(database_url, tmp_path, plan="team") as here:
        async with killing(2, spawner) as killed:
            failed = await convert(here, document, **key)
        assert len(killed) == 2
        assert (failed["success"], failed["error"]) == (False, LOST)
        repeated = await convert(here, document, **key)
        balance = await here.services.ledger.balance(here.account.account_id)
    assert repeated["success"], repeated
    assert balance.used_conversions == 1
