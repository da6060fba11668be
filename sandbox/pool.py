"""The converters of one process: who may run, when, and where.

A place in the queue is taken at once or refused; `async with pool.lease(tenant) as worker` waits for a worker;
`await worker.run(command)` is a verdict.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.exposure import exposed
from sandbox.isolation import policy, readable_paths
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.process.connection import Connection
from sandbox.queue import AdmissionQueue, QueueFull, QueueTicket, State, TenantLimit
from sandbox.report import Report
from sandbox.selftest import SelfTest
from sandbox.verdict import Verdict

__all__ = ["Pool", "QueueFull", "QueueTicket", "SandboxUnavailable", "TenantLimit", "WorkerLease", "open_pool"]


class WorkerLease:
    """A worker that is this holder's until its ticket is released; one command at a time.

    While its ticket is suspended its command stands still, and the next one waits.
    """

    def __init__(self, pool: "Pool", ticket: QueueTicket) -> None:
        self._pool = pool
        self._ticket = ticket
        self._one = anyio.Lock(fast_acquire=True)

    async def run(self, command: Command) -> Verdict:
        """Run a command and say how it ended; never raises for what the command does.

        When it is cancelled the run is ended, and nothing of it is left when the cancellation goes on.
        """
        async with self._one:
            return await self._pool.run(self._ticket, command)


class Pool:
    """A bounded number of converters behind a bounded queue, fair between tenants."""

    def __init__(
        self, config: Config, connection: Connection, report: Report, on_suspended: Callable[[], None]
    ) -> None:
        self.queue = AdmissionQueue(
            workers=config.converters,
            waiting=config.waiting_room,
            suspended=config.suspended,
            per_tenant=config.per_tenant,
        )
        self.on_released: Callable[[], None] = lambda: None
        """Called each time that a place has become free, whatever it was taken for."""
        self._lease_seconds = config.lease_seconds
        self._connection = connection
        self._report = report
        self._on_suspended = on_suspended
        self._turns: dict[QueueTicket, anyio.Event] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, ticket: QueueTicket) -> WorkerLease:
        """Wait for a worker, once; the ticket is to be released all the same."""
        self._apply(self.queue.acquire(ticket, anyio.current_time()))
        await self._turn(ticket)
        return WorkerLease(self, ticket)

    def release(self, ticket: QueueTicket) -> None:
        """Leave place and worker to others; doing it twice changes nothing."""
        is_first = ticket.state is not State.RELEASED
        changed = self.queue.release(ticket, anyio.current_time())
        self._turns.pop(ticket, None)
        self._connection.resume(ticket.slot)
        self._apply(changed)
        if is_first:
            self.on_released()

    @asynccontextmanager
    async def lease(self, tenant: str) -> AsyncIterator[WorkerLease]:
        """Take a place and wait for a worker.

        Raises:
            TenantLimit, QueueFull: at once, when no place is left for this tenant.
        """
        [ticket] = self.queue.enqueue(tenant)
        try:
            yield await self.acquire(ticket)
        finally:
            self.release(ticket)

    async def run(self, ticket: QueueTicket, command: Command) -> Verdict:
        """Run a command of a ticket that has a worker, for no longer than its lease; for `WorkerLease`."""
        await self._turn(ticket)
        left = self._lease_seconds - ticket.seconds_run(anyio.current_time())
        return await self._connection.run(ticket.slot, _within(command, left))

    def report(self) -> Report:
        """Which isolation layers and which launchers are in use, and why the others are not."""
        return self._report

    @property
    def is_up(self) -> bool:
        """Whether commands can be started now: the helper that does it is there, and holds what the mode requires."""
        return self._connection.is_up

    async def _turn(self, ticket: QueueTicket) -> None:
        while ticket.state is not State.RUNNING:
            await self._turns.setdefault(ticket, anyio.Event()).wait()

    def _apply(self, changed: Sequence[QueueTicket]) -> None:
        for ticket in changed:
            if ticket.state is State.SUSPENDED:
                self._connection.suspend(ticket.slot)
                self._on_suspended()
            else:
                self._connection.resume(ticket.slot)
                if turn := self._turns.pop(ticket, None):
                    turn.set()
        if self._timer is None and (due := self.queue.due(anyio.current_time())) is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._apply(self.queue.tick(anyio.current_time()))


def _within(command: Command, seconds: float) -> Command:
    """The command with no more time than is left."""
    if seconds >= command.limits.wall_seconds:
        return command
    limits = msgspec.structs.replace(command.limits, wall_seconds=max(0.0, seconds))
    return msgspec.structs.replace(command, limits=limits)


async def _test(config: Config, private: Mapping[str, Path], connection: Connection, report: Report) -> Report:
    """Try to get out, choose the launchers, and complete the report.

    Raises:
        SandboxUnavailable: something outside was reached, under strict mode.
    """

    async def run(command: Command, launcher: LauncherName | None) -> Verdict:
        return await connection.run(0, command, launcher)

    escapes, tried = await SelfTest(run, config, private).performed()
    readable = tuple(map(str, readable_paths.everything(config)))
    complete = msgspec.structs.replace(report, launchers=tried, escapes=escapes, readable=readable)
    policy.enforce(config.mode, complete)
    connection.use(complete.active_launchers)
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
async def open_pool(
    config: Config, private: Mapping[str, Path] | None = None, on_suspended: Callable[[], None] = lambda: None
) -> AsyncIterator[Pool]:
    """Open a pool; when it closes every run has ended and no process is left.

    `private` is what no run may get at, by what a report calls it, whether it is there yet or not. `on_suspended` is
    called each time that a lease is suspended.

    Raises:
        SandboxUnavailable: this host lacks what strict mode requires, or what runs read holds something private; the
            message says what.
    """
    secret = {"the work directory": config.work_root, **(private or {})}
    if config.memory_root is not None:
        secret["the memory directory"] = config.memory_root
    if found := exposed(readable_paths.everything(config), secret, config.work_root):
        raise SandboxUnavailable(" ".join(found))
    connection = Connection(config)
    async with _plain_errors(), anyio.create_task_group() as tasks:
        tasks.start_soon(connection.serve)
        try:
            report = await connection.opened()
            yield Pool(config, connection, await _test(config, private or {}, connection, report), on_suspended)
        finally:
            connection.close()
