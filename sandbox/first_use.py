"""Attacks from each Python server before it runs a first command.

A server starts when a command needs it. Until a program that it has started has reached nothing private, plain exec
runs its commands.
"""

from functools import partial

import anyio
import msgspec
import structlog

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.launchers.python_server import python_servers
from sandbox.process.connection import Connection
from sandbox.report import LauncherReport, Report
from sandbox.selftest import SelfTest

log = structlog.get_logger()


class FirstUse:
    """The servers that no command has needed yet, and the report on all launchers."""

    def __init__(self, config: Config, connection: Connection, self_test: SelfTest, report: Report) -> None:
        self._connection = connection
        self._self_test = self_test
        self._untested = {kind.name: kind for kind in python_servers(config)}
        self._one = anyio.Lock()
        self.report = report

    async def prepare(self, command: Command, slot: int) -> None:
        """Test the server that will start `command`, unless it has been; commands that come meanwhile wait.

        The test runs in the slot of the command, in which nothing else may run.
        """
        for name in [name for name, kind in self._untested.items() if kind.takes(command)]:
            await self._test(name, slot)

    async def test_all(self, slot: int) -> Report:
        """Test all servers that no command has needed yet; returns the complete report."""
        for name in tuple(self._untested):
            await self._test(name, slot)
        return self.report

    async def _test(self, name: LauncherName, slot: int) -> None:
        async with self._one:
            if name not in self._untested:
                return
            try:
                reached = await self._self_test.reached_by(name, partial(self._connection.run, slot))
            except OSError as error:
                # The next command tries again.
                log.warning("sandbox.server_untested", server=name.value, reason=error.strerror)
                return
            del self._untested[name]
            self._told(name, reached)

    def _told(self, name: LauncherName, reached: tuple[str, ...]) -> None:
        reason = f"a program that it started reached {', '.join(reached)}" if reached else ""
        if reached:
            log.error("sandbox.server_refused", server=name.value, reason=reason)
        row = LauncherReport(name=name, active=not reached, reason=reason)
        self.report = msgspec.structs.replace(
            self.report,
            launchers=tuple(row if each.name is name else each for each in self.report.launchers),
            escapes=tuple(dict.fromkeys((*self.report.escapes, *reached))),
        )
        self._connection.use(self.report.active_launchers)
