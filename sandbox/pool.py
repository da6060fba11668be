"""The pool of converters of one process: admits runs, schedules them and starts them.

`async with pool.lease(tenant) as converter` takes a place in the queue, or fails at once, and waits for a converter;
`await converter.run(command)` returns a verdict.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.exposure import exposed
from sandbox.first_use import FirstUse
from sandbox.isolation import policy, readable_paths
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.launchers.python_server import python_servers
from sandbox.process.connection import Connection
from sandbox.queue import AdmissionQueue, QueueFull, QueueTicket, State, TenantLimit
from sandbox.report import LauncherReport, SandboxReport
from sandbox.selftest import SelfTest
from sandbox.verdict import Verdict

__all__ = ["ConverterLease", "Pool", "QueueFull", "QueueTicket", "SandboxUnavailable", "TenantLimit", "open_pool"]


class ConverterLease:
    """A converter, held until its ticket is released; it runs one command at a time.

    While the ticket is suspended, the current command is stopped and the next one waits.
    """

    def __init__(self, pool: "Pool", ticket: QueueTicket) -> None:
        self._pool = pool
        self._ticket = ticket
        self._one = asyncio.Lock()

    async def run(self, command: Command) -> Verdict:
        """Run a command and return its verdict; never raises for what the command does.

        Cancellation ends the run, and propagates only when no process of it is left.
        """
        async with self._one:
            return await self._pool.run(self._ticket, command)


class Pool:
    """A bounded number of converters behind a bounded queue, fair between tenants."""

    def __init__(
        self, config: Config, connection: Connection, first_use: FirstUse, on_suspended: Callable[[], None]
    ) -> None:
        self.queue = AdmissionQueue(
            converters=config.converters,
            waiting=config.waiting_room,
            suspended=config.suspended,
            per_tenant=config.per_tenant,
        )
        self.on_released: Callable[[], None] = lambda: None
        """Called each time a place becomes free."""
        self._lease_seconds = config.lease_seconds
        self._connection = connection
        self._first_use = first_use
        self._on_suspended = on_suspended
        self._turns: dict[QueueTicket, asyncio.Event] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def acquire(self, ticket: QueueTicket) -> ConverterLease:
        """Wait for a converter, once per ticket. The ticket must be released even if this fails."""
        self._apply(self.queue.acquire(ticket, time.monotonic()))
        await self._turn(ticket)
        return ConverterLease(self, ticket)

    def release(self, ticket: QueueTicket) -> None:
        """Release the place and the converter; releasing twice has no effect."""
        if ticket.state is State.RELEASED:
            return
        changed = self.queue.release(ticket, time.monotonic())
        self._turns.pop(ticket, None)
        self._connection.resume(ticket.slot)
        self._apply(changed)
        self.on_released()

    @asynccontextmanager
    async def lease(self, tenant: str) -> AsyncIterator[ConverterLease]:
        """Take a place and wait for a converter.

        Raises:
            TenantLimit, QueueFull: no place is left for this tenant.
        """
        [ticket] = self.queue.enqueue(tenant)
        try:
            yield await self.acquire(ticket)
        finally:
            self.release(ticket)

    async def run(self, ticket: QueueTicket, command: Command) -> Verdict:
        """Run a command for a ticket that has a converter, at most until its lease ends. Called by `ConverterLease`."""
        await self._turn(ticket)
        await self._first_use.prepare(command, ticket.slot)
        left = self._lease_seconds - ticket.seconds_run(time.monotonic())
        return await self._connection.run(ticket.slot, _within(command, left))

    def report(self) -> SandboxReport:
        """The isolation layers and launchers in use, and why others are not."""
        return self._first_use.report

    async def complete_report(self) -> SandboxReport:
        """The report after a test of all launchers, also of those that no command has needed yet.

        Raises:
            TenantLimit, QueueFull: no converter can be had for the test.
        """
        [ticket] = self.queue.enqueue("self-test")
        try:
            await self.acquire(ticket)
            return await self._first_use.test_all(ticket.slot)
        finally:
            self.release(ticket)

    @property
    def is_up(self) -> bool:
        """Whether commands can start now: the helper is up and provides what the mode requires."""
        return self._connection.is_up

    async def _turn(self, ticket: QueueTicket) -> None:
        while ticket.state is not State.RUNNING:
            await self._turns.setdefault(ticket, asyncio.Event()).wait()

    def _apply(self, changed: Sequence[QueueTicket]) -> None:
        for ticket in changed:
            if ticket.state is State.SUSPENDED:
                self._connection.suspend(ticket.slot)
                self._on_suspended()
            else:
                self._connection.resume(ticket.slot)
                if turn := self._turns.pop(ticket, None):
                    turn.set()
        if self._timer is None and (due := self.queue.due(time.monotonic())) is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._apply(self.queue.tick(time.monotonic()))


def _within(command: Command, seconds: float) -> Command:
    """The command, with at most `seconds` of wall-clock time."""
    if seconds >= command.limits.wall_seconds:
        return command
    limits = msgspec.structs.replace(command.limits, wall_seconds=max(0.0, seconds))
    return msgspec.structs.replace(command, limits=limits)


async def _test(config: Config, private: Mapping[str, Path], connection: Connection, report: SandboxReport) -> FirstUse:
    """Run the self-test and choose the launchers; returns the test of those that start later.

    Raises:
        SandboxUnavailable: in strict mode, the self-test reached something outside.
    """

    async def run(command: Command, launcher: LauncherName | None) -> Verdict:
        return await connection.run(0, command, launcher)

    self_test = SelfTest(config, private)
    escapes, tried = await self_test.performed(run)
    readable = tuple(map(str, readable_paths.everything(config)))
    complete = msgspec.structs.replace(report, launchers=(*tried, *_later(config)), escapes=escapes, readable=readable)
    policy.enforce(config.mode, complete)
    connection.use(complete.active_launchers)
    return FirstUse(config, connection, self_test, complete)


def _later(config: Config) -> Iterator[LauncherReport]:
    reason = "it starts with the first command that needs it, and is tested then"
    return (
        LauncherReport(name=kind.name, active=False, reason=reason, is_tested=False) for kind in python_servers(config)
    )


@asynccontextmanager
async def _plain_errors() -> AsyncIterator[None]:
    """Unwrap the single error of a task group: callers of `open_pool` need not know that it uses one."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            [error] = group.exceptions
            raise error from error.__cause__
        raise


@asynccontextmanager
async def open_pool(
    config: Config, private: Mapping[str, Path] | None = None, on_suspended: Callable[[], None] = lambda: None
) -> AsyncIterator[Pool]:
    """Open a pool; when it has closed, every run has ended and no process is left.

    `private` maps names, as used in reports, to paths that no run may reach; the paths need not exist yet.
    `on_suspended` is called each time a lease is suspended.

    Raises:
        SandboxUnavailable: this host lacks what strict mode requires, or runs could read something private; the
            message names it.
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
