"""Real runs that are suspended in favor of another tenant's."""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import anyio

from sandbox.command import Command, Limits
from sandbox.config import Config
from sandbox.pool import open_pool
from sandbox.process.connection import Connection
from sandbox.queue import State
from sandbox.verdict import Ending, Verdict
from tests.sandbox.processes import command_line, processes_below, state_of
from tests.support.patience import until

COUNT = """
import os, time
at = 0
while not os.path.exists("enough"):
    at += 1
    with open("count", "w") as file:
        file.write(str(at))
    time.sleep(0.01)
"""


LIMITS = (2.0, 8.0, 32.0)
"""Seconds of a run: on a busy host, more may pass before it is suspended."""


def command(work_root: Path, name: str, program: str = COUNT, seconds: float = 60.0) -> Command:
    """A Python program in a directory of its own."""
    directory = work_root / name
    directory.mkdir(exist_ok=True)
    return Command(argv=(sys.executable, "-c", program), directory=directory, limits=Limits(wall_seconds=seconds))


def one_converter(work_root: Path) -> Config:
    """A pool in which two tenants have to take turns."""
    return Config(work_root=work_root, converters=1, suspended=1)


def counting() -> dict[int, str]:
    """The counting processes, and each one's state in the kernel."""
    found = {}
    for pid in processes_below():
        if COUNT.encode() in command_line(pid):
            with suppress(OSError):
                found[pid] = state_of(pid)
    return found


async def test_a_run_lends_its_converter_and_goes_on(work_root: Path) -> None:
    """The other tenant's runs end while the first continues to count, in one process from beginning to end."""
    long = command(work_root, "long")
    verdicts: list[Verdict] = []
    suspensions: list[str] = []
    async with open_pool(one_converter(work_root), on_suspended=lambda: suspensions.append("long")) as pool:

        async def hold() -> None:
            async with pool.lease("a") as converter:
                verdicts.append(await converter.run(long))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await until((long.directory / "count").exists)
            processes = set(counting())
            for number in range(3):
                async with pool.lease("b") as converter:
                    quick = await converter.run(command(work_root, f"quick {number}", ""))
                assert quick.ending is Ending.OK
            assert (verdicts, set(counting())) == ([], processes)
            (long.directory / "enough").touch()
    assert [verdict.ending for verdict in verdicts] == [Ending.OK]
    assert suspensions


async def test_a_suspended_run_stands_still_and_its_clock_too(work_root: Path) -> None:
    """It may be suspended for longer than its time limit, on a host that lets it run within that limit otherwise."""
    connection = Connection(one_converter(work_root))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        ended = {}
        for seconds in LIMITS:
            run = command(work_root, f"run{seconds}", seconds=seconds)
            verdict = ended[seconds] = await suspended_for_longer(connection, run)
            if verdict.ending is Ending.OK:
                assert verdict.wall_seconds < seconds
                break
        assert Ending.OK in {verdict.ending for verdict in ended.values()}, ended
        connection.close()


async def suspended_for_longer(connection: Connection, run: Command) -> Verdict:
    """The verdict on a run that is suspended for longer than its limit, unless it has reached that before."""
    verdicts: list[Verdict] = []

    async def hold() -> None:
        verdicts.append(await connection.run(0, run))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await until((run.directory / "count").exists)
        connection.suspend(0)
        await until(lambda: verdicts or set(counting().values()) == {"T"})
        before = len(verdicts)
        await anyio.sleep(run.limits.wall_seconds * 1.3)
        assert len(verdicts) == before
        (run.directory / "enough").touch()
        connection.resume(0)
    return verdicts[0]


async def test_what_starts_in_a_suspended_slot_stands_still_from_the_first(work_root: Path) -> None:
    """A command that arrives while its slot is suspended does nothing before it is resumed."""
    connection = Connection(one_converter(work_root))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        await connection.opened()
        run = command(work_root, "run")
        (run.directory / "enough").touch()
        verdicts: list[Verdict] = []

        async def hold() -> None:
            verdicts.append(await connection.run(0, run))

        connection.suspend(0)
        tasks.start_soon(hold)
        assert (await connection.run(1, command(work_root, "other", ""))).ending is Ending.OK
        assert verdicts == []
        connection.resume(0)
        await until(lambda: verdicts)
        assert verdicts[0].ending is Ending.OK
        connection.close()


async def test_a_suspended_run_can_be_cancelled(work_root: Path) -> None:
    """Nothing of it is left, its place and slot are free, and the other tenant's run is not affected."""
    async with open_pool(one_converter(work_root)) as pool, anyio.create_task_group() as tasks:
        scopes = {tenant: anyio.CancelScope() for tenant in "ab"}
        tickets = {tenant: pool.queue.enqueue(tenant)[0] for tenant in "ab"}

        async def hold(tenant: str) -> None:
            with scopes[tenant]:
                try:
                    converter = await pool.acquire(tickets[tenant])
                    await converter.run(command(work_root, tenant))
                finally:
                    pool.release(tickets[tenant])

        for tenant in "ab":
            tasks.start_soon(hold, tenant)
        await until((work_root / "b" / "count").exists)
        await until(lambda: pool.queue.suspended)
        [lender] = [tenant for tenant in "ab" if tickets[tenant].state is State.SUSPENDED]
        scopes[lender].cancel()
        while tickets[lender].state is not State.RELEASED:  # noqa: ASYNC110 - its task does it
            await anyio.sleep(0.01)
        assert len(counting()) == 1
        assert pool.queue.places_taken == 1
        [other] = {"a", "b"} - {lender}
        (work_root / other / "enough").touch()
    assert counting() == {}


async def test_a_lost_helper_takes_the_suspended_run_along(work_root: Path) -> None:
    """Both runs end as internal errors; each tenant's next run succeeds, and they still take turns."""
    endings: dict[str, list[Ending]] = {"a": [], "b": []}
    async with open_pool(one_converter(work_root)) as pool, anyio.create_task_group() as tasks:

        async def hold(tenant: str) -> None:
            async with pool.lease(tenant) as converter:
                for name in (tenant, f"{tenant} again"):
                    endings[tenant].append((await converter.run(command(work_root, name))).ending)

        for tenant in "ab":
            tasks.start_soon(hold, tenant)
        await until((work_root / "b" / "count").exists)
        await until(lambda: pool.queue.suspended)
        lost = processes_below()
        for how in (signal.SIGSTOP, signal.SIGKILL):  # a spawner that is still running would report how a run ended
            for pid in lost:
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
        for tenant in "ab":
            await until((work_root / f"{tenant} again" / "count").exists)
        assert len(counting()) == 2
        for tenant in "ab":
            (work_root / f"{tenant} again" / "enough").touch()
    assert endings == {"a": [Ending.INTERNAL, Ending.OK], "b": [Ending.INTERNAL, Ending.OK]}


async def test_a_pool_that_closes_ends_the_suspended_run(work_root: Path) -> None:
    """Like all others."""
    async with open_pool(one_converter(work_root)) as pool:
        async with anyio.create_task_group() as tasks:

            async def hold(tenant: str) -> None:
                async with pool.lease(tenant) as converter:
                    await converter.run(command(work_root, tenant))

            for tenant in "ab":
                tasks.start_soon(hold, tenant)
            await until(lambda: pool.queue.suspended)
            tasks.cancel_scope.cancel()
        assert pool.queue.places_taken == 0
    assert processes_below() == set()
