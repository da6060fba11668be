"""A pool from the outside: turns, cancellation, loss of its helper."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from structlog.testing import capture_logs

from sandbox.command import Command, Limits
from sandbox.config import Config
from sandbox.locked_directory import LockedDirectory
from sandbox.pool import Pool, QueueFull, SandboxUnavailable, open_pool
from sandbox.process import helper
from sandbox.verdict import Ending
from tests.sandbox.processes import command_line, parent_of, processes_below
from tests.support.patience import PATIENCE_SECONDS, until


def python(directory: Path, program: str) -> Command:
    """A Python program in a directory."""
    return Command(argv=(sys.executable, "-c", program), directory=directory, limits=Limits(wall_seconds=30))


async def until_started(directory: Path) -> None:
    """Wait for the file with which a program reports that it runs."""
    await until((directory / "started").exists)


async def test_a_cancelled_run_is_over_when_the_cancellation_goes_on(config: Config, directory: Path) -> None:
    """Cancellation ends the process, frees the slot and leaves nothing."""
    sleeper = python(directory, "open('started', 'w').close()\nimport time; time.sleep(60)")
    async with open_pool(config) as pool:
        before = processes_below()
        async with anyio.create_task_group() as tasks:

            async def hold() -> None:
                async with pool.lease("a") as converter:
                    await converter.run(sleeper)

            tasks.start_soon(hold)
            await until_started(directory)
            assert processes_below() > before
            tasks.cancel_scope.cancel()
        assert processes_below() == before
        assert pool.queue.places_taken == 0
        async with pool.lease("a") as converter:
            assert (await converter.run(python(directory, ""))).ending is Ending.OK


async def test_closing_the_pool_leaves_no_process(config: Config, directory: Path) -> None:
    """Once the pool has closed, its helper is gone too."""
    before = processes_below()
    async with open_pool(config) as pool, pool.lease("a") as converter:
        await converter.run(python(directory, ""))
    assert processes_below() == before


async def test_no_more_run_at_once_than_there_are_converters(work_root: Path) -> None:
    """With many leases and two converters, there is never a third process."""
    config = Config(work_root=work_root, converters=2, suspended=0)  # or others would run while a slow one waits
    running = peak = 0
    async with open_pool(config) as pool:

        async def one(number: int) -> None:
            nonlocal running, peak
            directory = work_root / str(number)
            directory.mkdir()
            async with pool.lease(f"tenant {number % 3}") as converter:
                running += 1
                peak = max(peak, running)
                assert (await converter.run(python(directory, ""))).ending is Ending.OK
                running -= 1

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(one, number)
    assert peak == 2


async def test_a_full_pool_refuses_at_once(work_root: Path) -> None:
    """Without a free place, nobody waits."""
    async with open_pool(Config(work_root=work_root, converters=1, waiting_room=0)) as pool:
        [ticket] = pool.queue.enqueue("a")
        with pytest.raises(QueueFull):
            async with pool.lease("b"):
                pass
        pool.release(ticket)
        async with pool.lease("b"):
            pass


async def test_a_lost_helper_is_replaced_and_its_run_told_as_internal(config: Config, directory: Path) -> None:
    """Kill -9 of everything below the service costs the current run, not the service."""
    sleeper = python(directory, "open('started', 'w').close()\nimport time; time.sleep(60)")
    async with open_pool(config) as pool, pool.lease("a") as converter:

        async def kill() -> None:
            await until_started(directory)
            # The helpers first: a spawner that lives tells how the run has ended.
            for pid in sorted(processes_below(), key=lambda pid: b"sandbox.process.keeper" not in command_line(pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill)
            assert (await converter.run(sleeper)).ending is Ending.INTERNAL
        assert (await converter.run(python(directory, ""))).ending is Ending.OK


@pytest.mark.parametrize("suspended", ["spawner", "keeper and spawner"])
async def test_a_silent_helper_is_replaced_too(
    config: Config, directory: Path, monkeypatch: pytest.MonkeyPatch, suspended: str
) -> None:
    """One that is suspended for good would otherwise hold its runs, and all that wait for a converter, without end."""
    monkeypatch.setattr(helper, "PING_SECONDS", 0.5)
    monkeypatch.setattr(helper, "_CLOSE_SECONDS", 1)
    with capture_logs() as log:
        await replace_silent(config, directory, monkeypatch, suspended)
    assert reasons(log) == ["it did not answer, and was ended"]


async def replace_silent(config: Config, directory: Path, monkeypatch: pytest.MonkeyPatch, suspended: str) -> None:
    """Suspend a helper during a run, and run a command in the next one."""
    sleeper = python(directory, "open('started', 'w').close()\nimport time; time.sleep(60)")
    async with open_pool(config) as pool, pool.lease("a") as converter:
        before = processes_below()

        async def suspend() -> None:
            await until_started(directory)
            helpers = helpers_below()
            for pid in helpers:
                if suspended == "keeper and spawner" or parent_of(pid) in helpers:
                    os.kill(pid, signal.SIGSTOP)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(suspend)
            assert (await converter.run(sleeper)).ending is Ending.INTERNAL
        monkeypatch.setattr(helper, "PING_SECONDS", PATIENCE_SECONDS)  # the next one may be slow
        assert (await converter.run(python(directory, ""))).ending is Ending.OK
        assert not before & processes_below()


@pytest.mark.parametrize(
    ("is_keeper", "expected"),
    [(False, "it was killed by signal 9 (Killed)"), (True, "its keeper was killed by signal 9 (Killed)")],
)
async def test_the_log_says_why_a_helper_was_lost(
    config: Config, directory: Path, expected: str, *, is_keeper: bool
) -> None:
    """Operators see whether the kernel has killed it, as for want of memory, or it has failed."""
    with capture_logs() as log:
        async with open_pool(config) as pool, pool.lease("a") as converter:
            helpers = helpers_below()
            [victim] = [pid for pid in helpers if (parent_of(pid) in helpers) is not is_keeper]
            os.kill(victim, signal.SIGKILL)
            await until(lambda: bool(reasons(log)))
            while (await converter.run(python(directory, ""))).ending is Ending.INTERNAL:
                pass
    assert reasons(log) == [expected]


def reasons(log: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why helpers were lost."""
    return [entry["reason"] for entry in log if entry["event"] == "sandbox.spawner_lost"]


async def test_a_helper_that_is_suspended_before_it_is_ready_is_replaced_too(
    config: Config, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would otherwise keep all later runs from starting."""
    monkeypatch.setattr(helper, "_CLOSE_SECONDS", 1)
    async with open_pool(config) as pool, pool.lease("a") as converter:
        monkeypatch.setattr(helper, "START_SECONDS", 1.0)
        for pid in (starting := await lose_helper(pool)):
            os.kill(pid, signal.SIGSTOP)
        for pid in helpers_below() - starting:  # a spawner that its keeper has started meanwhile
            os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr(helper, "START_SECONDS", PATIENCE_SECONDS)  # the next one may be slow
        while (await converter.run(python(directory, ""))).ending is Ending.INTERNAL:
            pass
        assert not starting & processes_below()


async def test_a_first_helper_that_does_not_become_ready_is_a_refusal(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service then ends with a message, instead of waiting without end."""
    monkeypatch.setattr(helper, "START_SECONDS", 0.001)
    with pytest.raises(SandboxUnavailable, match=r"not ready after 0\.001 seconds"):
        async with open_pool(config):
            pass
    assert not processes_below()


async def test_a_pool_closes_while_its_helper_is_being_replaced(config: Config) -> None:
    """A service that is stopped then ends, and leaves no helper."""
    async with open_pool(config) as pool:
        await lose_helper(pool)
    assert not processes_below()


async def lose_helper(pool: Pool) -> set[int]:
    """Kill -9 the helper, and wait until the next one is being started; return its processes."""
    for pid in (lost := helpers_below()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while pool.is_up or not (starting := helpers_below() - lost):  # noqa: ASYNC110 - other processes start and end
        await anyio.sleep(0.001)
    return starting


def helpers_below() -> set[int]:
    """The processes that are a keeper or its spawner."""
    return {pid for pid in processes_below() if b"sandbox.process.keeper" in command_line(pid)}


async def test_nothing_outlives_a_service_that_is_killed(work_root: Path, directory: Path) -> None:
    """Kill -9 of the service ends its helper and every run."""
    program = (
        "import anyio, sys\nfrom pathlib import Path\n"
        "from sandbox.command import Command\nfrom sandbox.config import Config\nfrom sandbox.pool import open_pool\n"
        "async def main():\n"
        f" async with open_pool(Config(work_root=Path({str(work_root)!r}))) as pool, pool.lease('a') as converter:\n"
        "  code = \"open('started', 'w').close(); import time; time.sleep(60)\"\n"
        f"  await converter.run(Command(argv=(sys.executable, '-c', code), directory=Path({str(directory)!r})))\n"
        "anyio.run(main)\n"
    )
    service = await anyio.open_process([sys.executable, "-c", program], cwd=Path(__file__).parents[2], stderr=None)
    try:
        await until_started(directory)
        below = processes_below(service.pid)
        assert len(below) >= 3
    finally:
        service.kill()
        await service.wait()
        await service.aclose()
    while below & processes_below(1):  # noqa: ASYNC110 - other processes end
        await anyio.sleep(0.01)


async def test_a_program_that_is_not_there_is_our_failure(config: Config, directory: Path) -> None:
    """A command that cannot be started ends as internal, with the reason for the log."""
    async with open_pool(config) as pool, pool.lease("a") as converter:
        verdict = await converter.run(Command(argv=("/nonexistent/program",), directory=directory))
    assert verdict.ending is Ending.INTERNAL
    assert "nonexistent" in verdict.detail


async def test_the_environment_is_only_what_the_command_says(
    config: Config, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the service's environment reaches a program."""
    monkeypatch.setenv("SECRET", "value")
    command = Command(
        argv=(sys.executable, "-c", "import os; open('e', 'w').write(repr(sorted(os.environ)))"),
        directory=directory,
        environment={"LC_ALL": "C.UTF-8", "GIVEN": "1"},
    )
    async with open_pool(config) as pool, pool.lease("a") as converter:
        await converter.run(command)
    assert (directory / "e").read_text() == "['GIVEN', 'LC_ALL']"


async def test_the_directories_of_a_killed_service_are_removed_by_the_next(work_root: Path) -> None:
    """Directories without a living owner are removed; others stay."""
    abandoned = work_root / ".selftest-abandoned"
    (abandoned / "1").mkdir(parents=True)
    living = LockedDirectory(work_root, ".selftest")
    async with open_pool(Config(work_root=work_root)):
        assert not abandoned.exists()
        assert living.path.exists()
    living.remove()
