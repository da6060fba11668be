"""Attacks from each Python server before it runs a first command.

A server starts when a command needs it. Until a program that it has started has reached nothing private, plain exec
runs its commands.
"""

import time
from functools import partial

import anyio
import msgspec
import structlog

from sandbox.command import Command
from sandbox.config import Config
from sandbox.launchers.python_server import PythonServerKind, python_servers
from sandbox.process.connection import Connection
from sandbox.report import LauncherReport, Report
from sandbox.selftest import SelfTest

log = structlog.get_logger()

_PAUSE_SECONDS = 60
"""A test that cannot be made costs the start of a server, for which a command waits."""


class _Untested:
    """A server that no command has needed yet, and when a test of it could not be made."""

    def __init__(self, kind: PythonServerKind) -> None:
        self.kind = kind
        self.one = anyio.Lock()
        self.failed_at = float("-inf")

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.failed_at + _PAUSE_SECONDS


class FirstUse:
    """The servers that no command has needed yet, and the report on all launchers."""

    def __init__(self, config: Config, connection: Connection, self_test: SelfTest, report: Report) -> None:
        self._connection = connection
        self._self_test = self_test
        self._untested = {kind.name: _Untested(kind) for kind in python_servers(config)}
        self.report = report

    async def prepare(self, command: Command, slot: int) -> None:
        """Test the server that will start `command`, unless it has been; its other commands wait meanwhile.

        The test runs in the slot of the command, in which nothing else may run. It goes on if the slot is suspended:
        those in whose favor it is may wait for the same test. If it cannot be made, a command that comes a minute later
        or more tries again.
        """
        for server in [server for server in self._untested.values() if server.kind.takes(command)]:
            await self._test(server, slot)

    async def test_all(self, slot: int) -> Report:
        """Test all servers that no command has needed yet; returns the complete report."""
        for server in tuple(self._untested.values()):
            await self._test(server, slot)
        return self.report

    async def _test(self, server: _Untested, slot: int) -> None:
        name = server.kind.name
        async with server.one:
            if name not in self._untested or not server.is_due:
                return
            try:
                with self._connection.exempt(slot):
                    reached = await self._self_test.reached_by(name, partial(self._connection.run, slot))
            except OSError as error:
                server.failed_at = time.monotonic()
                log.warning("sandbox.server_untested", server=name.value, reason=error.strerror)
                self._tell(LauncherReport(name=name, active=False, reason=f"it was not tested: {error.strerror}"))
                return
            del self._untested[name]
            reason = f"a program that it started reached {', '.join(reached)}" if reached else ""
            if reached:
                log.error("sandbox.server_refused", server=name.value, reason=reason)
            self._tell(LauncherReport(name=name, active=not reached, reason=reason), reached)
            self._connection.use(self.report.active_launchers)

    def _tell(self, row: LauncherReport, reached: tuple[str, ...] = ()) -> None:
        self.report = msgspec.structs.replace(
            self.report,
            launchers=tuple(row if each.name is row.name else each for each in self.report.launchers),
            escapes=tuple(dict.fromkeys((*self.report.escapes, *reached))),
        )
