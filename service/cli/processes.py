"""Several serving processes on one port: the parent that opens the port, starts them and replaces them.

Theory of operation. The parent serves nothing and knows nothing of requests. It listens, and each process inherits the
socket and accepts from it, so connections that wait in the system's queue survive the end of any process. Apart from
the port, each process is a complete service with its share of the limits. They meet in the database, in the store, in
the directory of the metrics, and on the board of `siblings.py`.

The first process starts alone: it creates what all of them need, and reports what is wrong with the host or the
settings once. The parent learns of a process's readiness and of its end from a pipe that only this process holds open.
"""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec
import structlog
from anyio.abc import TaskStatus

from sandbox.locked_directory import LockedDirectory
from service.app.converters import converters_of
from service.cli.announcement import Announcement, announce
from service.cli.command import CommandError
from service.cli.membership import BOARD, METRICS, Membership
from service.cli.ports import Ports
from service.cli.stopping import stop_signals
from service.cores import cores
from service.settings import Settings
from service.siblings import open_board
from service.telemetry import events
from service.telemetry.shared_directory import forget_gauges, variables_for
from service.usecases.services import Role

AUTO: Final = "auto"
CORES_PER_PROCESS: Final = 2
"""A serving process keeps one core busy while its converters and the database keep another one busy."""
MOST: Final = 32
SHORT_LIFE_SECONDS: Final = 10.0
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 30.0
FAILED_STARTS: Final = 5
"""After so many failed starts in succession, with no other process ready, the service ends."""
LEAST_STUCK_SECONDS: Final = 10
_PROGRAM: Final = (sys.executable, "-m", __package__.partition(".")[0], "serve")
_REPORT_BYTES: Final = 1 << 16
_log = structlog.get_logger()


def process_count(settings: Settings) -> int:
    """Return the number of serving processes.

    Raises:
        CommandError: there are too few converters for so many.
    """
    converters = converters_of(settings)
    if settings.processes == AUTO:
        return min(math.ceil(cores() / CORES_PER_PROCESS), converters, MOST)
    count = int(settings.processes)
    if count > converters:
        raise CommandError(
            f"{count} processes need a converter each, and there are only {converters}. Set GEOMILL_PROCESSES to "
            f"{converters} or less, or GEOMILL_CONVERTERS to {count} or more."
        )
    return count


async def run_processes(count: int, settings: Settings, ports: Ports, role: Role) -> int:
    """Serve with `count` processes until SIGINT, SIGTERM or SIGHUP; return the exit code.

    Raises:
        CommandError: a process could not be started.
    """
    settings.data_path.mkdir(parents=True, exist_ok=True)
    directory = LockedDirectory(settings.data_path, "processes")
    try:
        return await _Parent(count, ports, directory.path, settings.lease_seconds, role).run()
    finally:
        directory.remove()


class _Parent:
    def __init__(self, count: int, ports: Ports, directory: Path, lease_seconds: int, role: Role) -> None:
        self._role = role
        self._count = count
        self._ports = ports
        self._directory = directory
        self._stuck_seconds = max(lease_seconds, LEAST_STUCK_SECONDS)
        self._board = open_board(directory / BOARD, count)
        self._alive: dict[int, subprocess.Popen[bytes]] = {}
        self._ready: set[int] = set()
        self._is_announced = False
        self._stop = anyio.Event()
        self._exit_code = 0

    async def run(self) -> int:
        """Start the processes and keep them running until a signal."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop_on_signal)
                tasks.start_soon(self._end_stuck_processes)
                async with anyio.create_task_group() as kept:
                    await kept.start(self._keep, 1)
                    for number in range(2, self._count + 1):
                        kept.start_soon(self._keep, number)
                tasks.cancel_scope.cancel()
        finally:
            for process in self._alive.values():  # there are none, unless one of them could not be started
                process.terminate()
            for process in self._alive.values():
                process.wait()
        return self._exit_code

    async def _keep(self, number: int, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep one process running until the service stops; its first start must succeed."""
        has_been_ready, failed_starts, short_lives = False, 0, 0
        while not self._stop.is_set():
            began = anyio.current_time()
            with _pipe() as (reading, writing):
                process = self._start(number, writing)
                is_ready = await self._wait_until_ready(number, reading)
                if is_ready and not has_been_ready:
                    has_been_ready = True
                    task_status.started()
                await anyio.wait_readable(reading)  # the end of the process closes the pipe
                status = await anyio.to_thread.run_sync(process.wait)
            self._forget(number)
            if self._stop.is_set():
                self._exit_code = max(self._exit_code, int(status != 0))
                break
            failed_starts = 0 if is_ready else failed_starts + 1
            if not has_been_ready or (failed_starts >= FAILED_STARTS and not self._ready):
                raise CommandError(_not_started(number, status, failed_starts))
            short_lives = short_lives + 1 if anyio.current_time() - began < SHORT_LIFE_SECONDS else 0
            pause = min(FIRST_PAUSE_SECONDS * 2**short_lives, LONGEST_PAUSE_SECONDS)
            _log.error(events.PROCESS_LOST, number=number, pid=process.pid, status=status, restart_seconds=pause)
            with anyio.move_on_after(pause):
                await self._stop.wait()
        if not has_been_ready:
            task_status.started()

    def _start(self, number: int, report: int) -> "subprocess.Popen[bytes]":
        private = self._ports.private
        membership = Membership(
            number=number,
            count=self._count,
            parent=os.getpid(),
            directory=str(self._directory),
            main=self._ports.main.fileno(),
            private=private.fileno() if private is not None else None,
            report=report,
        )
        self._alive[number] = process = subprocess.Popen(
            [*_PROGRAM, "--role", self._role, "--member", msgspec.json.encode(membership).decode()],
            env={**os.environ, **variables_for(number, self._directory / METRICS)},
            pass_fds=[each for each in (membership.main, membership.private, report) if each is not None],
            start_new_session=True,  # Ctrl-C reaches every process of a session, and the parent passes it on
        )
        os.close(report)
        return process

    async def _wait_until_ready(self, number: int, reading: int) -> bool:
        """Wait for a process to report that it is ready; return False if it ends first."""
        received = b""
        while not received.endswith(b"\n"):
            await anyio.wait_readable(reading)
            piece = os.read(reading, _REPORT_BYTES)
            if not piece:
                return False
            received += piece
        self._ready.add(number)
        if self._is_announced:
            _log.info(events.PROCESS_READY, number=number, pid=self._alive[number].pid)
        elif len(self._ready) == self._count:
            self._is_announced = True
            announce(msgspec.json.decode(received, type=Announcement), self._count)
        return True

    def _forget(self, number: int) -> None:
        """Remove what a process that has ended has left for the others to see."""
        del self._alive[number]
        self._ready.discard(number)
        self._board.clear(number)
        forget_gauges(number, self._directory / METRICS)

    async def _end_stuck_processes(self) -> None:
        """Kill processes that no longer update the board: others have ended their jobs by then.

        Counts looks instead of time, so that nothing is killed after this process itself was suspended.
        """
        seen: dict[int, tuple[int, int]] = {}
        while True:
            await anyio.sleep(1)
            for number in self._ready:
                beats = self._board.beats(number)
                looks = seen[number][1] + 1 if number in seen and seen[number][0] == beats else 0
                seen[number] = beats, looks
                if looks == self._stuck_seconds:
                    _log.error(events.PROCESS_STUCK, number=number, pid=self._alive[number].pid)
                    self._alive[number].kill()

    async def _stop_on_signal(self) -> None:
        """Stop all processes at the first signal in order, at the second, or at SIGQUIT, at once."""
        with stop_signals() as received:
            async for number in received:
                at_once = number == signal.SIGQUIT or self._stop.is_set()
                self._stop.set()
                for port in filter(None, self._ports):
                    port.close()  # the processes accept what is waiting, and close theirs
                for process in self._alive.values():
                    process.send_signal(signal.SIGQUIT if at_once else signal.SIGTERM)


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """Open a pipe; the code that takes over its writing end closes it in this process."""
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        os.close(reading)


def _not_started(number: int, status: int, failed_starts: int) -> str:
    how = f"signal {-status}" if status < 0 else f"exit code {status}"
    times = f"{failed_starts} times " if failed_starts > 1 else ""
    return (
        f"Serving process {number} ended {times}before it was ready ({how}), and the service with it. "
        "The messages above say why; with GEOMILL_PROCESSES=1 there is only one process."
    )
