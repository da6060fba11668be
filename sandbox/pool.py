"""The converters of one process: who may run, when, and where.

A seat is taken at once or refused; `async with seat as slot` waits its turn; `await slot.run(command)` is a verdict.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType

import anyio
import msgspec

from sandbox import places, policy
from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.connection import Connection
from sandbox.exposure import exposed
from sandbox.policy import SandboxUnavailable
from sandbox.report import Report
from sandbox.room import PoolFull, Room
from sandbox.selftest import SelfTest
from sandbox.verdict import Verdict

__all__ = ["Pool", "PoolFull", "SandboxUnavailable", "Seat", "Slot", "open_pool"]


class Slot:
    """A converter that is this holder's until the seat is left; one command at a time."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._one = anyio.Lock(fast_acquire=True)

    async def run(self, command: Command) -> Verdict:
        """Run a command and say how it ended; never raises for what the command does.

        When it is cancelled the run is ended, and nothing of it is left when the cancellation goes on.
        """
        async with self._one:
            return await self._connection.run(self._number, command)


class Seat:
    """A place in the pool, held from now on: entered once, or given up."""

    def __init__(self, room: Room, connection: Connection, tenant: str) -> None:
        self._room = room
        self._connection = connection
        self._called: anyio.Event | None = None
        self._ticket = room.take(tenant, self._call)

    async def turn(self) -> Slot:
        """Wait for this seat's turn, once; whoever has waited gives the seat up at last."""
        self._room.line_up(self._ticket)
        if self._ticket.slot is None:
            self._called = anyio.Event()
            await self._called.wait()
        return Slot(self._connection, self._ticket.require_slot())

    def _call(self) -> None:
        if self._called is not None:
            self._called.set()

    async def __aenter__(self) -> Slot:
        try:
            return await self.turn()
        except BaseException:
            self.give_up()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_up()

    def give_up(self) -> None:
        """Leave the pool to others; doing it twice changes nothing."""
        self._room.leave(self._ticket)


class Pool:
    """A bounded number of converters behind a bounded waiting room, fair between tenants."""

    def __init__(self, config: Config, connection: Connection, report: Report) -> None:
        self._room = Room(config.converters, config.waiting_room)
        self._connection = connection
        self._report = report

    def take_seat(self, tenant: str) -> Seat:
        """Hold a seat for `tenant`.

        Raises:
            PoolFull: at once, when no seat is left for this tenant.
        """
        return Seat(self._room, self._connection, tenant)

    def require_seat(self, tenant: str) -> None:
        """See that `take_seat` would succeed.

        Raises:
            PoolFull: see `take_seat`.
        """
        self._room.require_seat(tenant)

    def report(self) -> Report:
        """Which isolation layers and which launchers are in use, and why the others are not."""
        return self._report

    @property
    def seats_taken(self) -> int:
        """How many seats are held, those of running commands included."""
        return self._room.seats_taken

    @property
    def is_full(self) -> bool:
        """Whether no seat is left for anybody."""
        return self._room.is_full

    @property
    def is_up(self) -> bool:
        """Whether commands can be started now: the helper that does it is there, and holds what the mode requires."""
        return self._connection.is_up


async def _test(config: Config, private: Mapping[str, Path], connection: Connection, report: Report) -> Report:
    """Try to get out, choose the launchers, and complete the report.

    Raises:
        SandboxUnavailable: something outside was reached, under strict mode.
    """

    async def run(command: Command, launcher: LauncherName | None) -> Verdict:
        return await connection.run(0, command, launcher)

    escapes, tried = await SelfTest(run, config, private).performed()
    readable = tuple(map(str, places.everything(config)))
    complete = msgspec.structs.replace(report, launchers=tried, escapes=escapes, readable=readable)
    policy.enforce(config.mode, complete)
    await connection.use(complete.active_launchers)
    return complete


@asynccontextmanager
async def _plain_errors() -> AsyncIterator[None]:
    """Let the one error of a task group through as itself: whoever opens a pool knows nothing of its tasks."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


@asynccontextmanager
async def open_pool(config: Config, private: Mapping[str, Path] | None = None) -> AsyncIterator[Pool]:
    """Open a pool; when it closes every run has ended and no process is left.

    `private` is what no run may get at, by what a report calls it, whether it is there yet or not.

    Raises:
        SandboxUnavailable: this host lacks what strict mode requires, or what runs read holds something private; the
            message says what.
    """
    secret = {"the work directory": config.work_root, **(private or {})}
    if config.memory_root is not None:
        secret["the memory directory"] = config.memory_root
    if found := exposed(places.everything(config), secret, config.work_root):
        raise SandboxUnavailable(" ".join(found))
    connection = Connection(config)
    async with _plain_errors(), anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        try:
            report = await connection.opened()
            yield Pool(config, connection, await _test(config, private or {}, connection, report))
        finally:
            connection.close()
