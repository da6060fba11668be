"""Attacks from each server that was not up when the service started, before it runs a first command.

A Python server starts when a command needs it, and a fork server may take long on a busy host. Until a program that it
has started has reached nothing private, plain exec runs its commands.
"""

import time
from collections.abc import Iterator
from functools import partial

import anyio
import msgspec
import structlog

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.launchers.ogr2ogr_server import Ogr2ogrServerKind
from sandbox.launchers.python_server import python_servers
from sandbox.launchers.server import ServerKind
from sandbox.process.connection import Connection
from sandbox.report import LauncherReport, SandboxReport
from sandbox.selftest import SelfTest

log = structlog.get_logger()

_PAUSE_SECONDS = 60
"""A test that cannot be made costs the start of a server, for which a command waits."""


class _Untested:
    """A server that no command has needed yet, or that was not up, and when a test of it could not be made."""

    def __init__(self, kind: ServerKind) -> None:
        self.kind = kind
        self.one = anyio.Lock()
        self.failed_at = float("-inf")

    @property
    def is_due(self) -> bool:
        return time.monotonic() >= self.failed_at + _PAUSE_SECONDS


def _kinds(config: Config, report: SandboxReport) -> Iterator[ServerKind]:
    """The servers that are not tested yet."""
    yield from python_servers(config)
    ogr2ogr = config.ogr2ogr
    if (
        LauncherName.FORK_SERVER in report.untested_launchers
        and ogr2ogr is not None
        and ogr2ogr.fork_server is not None
    ):
        yield Ogr2ogrServerKind(ogr2ogr, ogr2ogr.fork_server)


class FirstUse:
    """The servers that are not tested yet, and the report on all launchers."""

    def __init__(self, config: Config, connection: Connection, self_test: SelfTest, report: SandboxReport) -> None:
        self._connection = connection
        self._self_test = self_test
        self._untested = {kind.name: _Untested(kind) for kind in _kinds(config, report)}
        self.report = report

    async def prepare(self, command: Command, slot: int) -> None:
        """Test the server that will start `command`, unless it has been; its other commands wait meanwhile.

        The test runs in the slot of the command, in which nothing else may run. It goes on if the slot is suspended:
        those in whose favor it is may wait for the same test. If it cannot be made, a command that comes a minute later
        or more tries again.
        """
        for server in [server for server in self._untested.values() if server.kind.takes(command)]:
            await self._test(server, slot)

    async def test_all(self, slot: int) -> SandboxReport:
        """Test all servers that are not tested yet; returns the complete report."""
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
                    reason, reached = await self._self_test.trouble_with(name, partial(self._connection.run, slot))
            except OSError as error:
                server.failed_at = time.monotonic()
                log.warning("sandbox.server_untested", server=name.value, reason=error.strerror)
                reason = f"it was not tested: {error.strerror}"
                self._tell(LauncherReport(name=name, active=False, reason=reason, is_tested=False))
                return
            del self._untested[name]
            if reason:
                log.error("sandbox.server_refused", server=name.value, reason=reason)
            self._tell(LauncherReport(name=name, active=not reason, reason=reason), reached)
            self._connection.use(self.report.active_launchers)

    def _tell(self, row: LauncherReport, reached: tuple[str, ...] = ()) -> None:
        self.report = msgspec.structs.replace(
            self.report,
            launchers=tuple(row if each.name is row.name else each for each in self.report.launchers),
            escapes=tuple(dict.fromkeys((*self.report.escapes, *reached))),
        )
