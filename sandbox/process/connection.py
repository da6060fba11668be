"""The service's end: commands out, verdicts in, over one helper at a time; a lost helper is replaced."""

import itertools
from collections.abc import Sequence

import anyio
import structlog

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.isolation import policy
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.process.helper import Helper
from sandbox.process.wire import Finished, Resume, Start, Stop, Suspend, ToSpawner, Use
from sandbox.report import Report
from sandbox.verdict import Ending, Verdict

log = structlog.get_logger("sandbox")

_RESTART_SECONDS = 0.2
_PATIENCE_SECONDS = 15


class _Pending:
    """A run whose verdict is awaited; a lost spawner leaves the verdict as it is here."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.verdict = Verdict(ending=Ending.INTERNAL, detail="the spawner ended before the run did")


class Connection:
    """Runs commands for those who wait for their verdicts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pending: dict[int, _Pending] = {}
        self._numbers = itertools.count(1)
        self._helper: Helper | None = None
        self._suspended: set[int] = set()
        self._up = anyio.Event()
        self._first_answer = anyio.Event()
        self._refusal: Exception | None = None
        self._report: Report | None = None
        self._closing = False
        self._launchers: tuple[LauncherName, ...] = (LauncherName.EXEC,)

    @property
    def is_up(self) -> bool:
        """Whether a helper is up that came through its probes."""
        return self._helper is not None

    async def opened(self) -> Report:
        """Wait for the first helper.

        Raises:
            SandboxUnavailable: it lacks what strict mode requires, or did not come up.
        """
        await self._first_answer.wait()
        if self._report is None:
            raise self._refusal or SandboxUnavailable("The sandbox's helper process ended while it started.")
        return self._report

    async def run(self, slot: int, command: Command, launcher: LauncherName | None = None) -> Verdict:
        """Run a command to its verdict; cancellation ends the run first and waits until nothing of it is left.

        With `launcher` it is started by that one or not at all.
        """
        if self._helper is None:
            with anyio.move_on_after(_PATIENCE_SECONDS):
                await self._up.wait()
        helper = self._helper
        if helper is None:
            return Verdict(ending=Ending.INTERNAL, detail="no spawner is up")
        number, pending = next(self._numbers), _Pending()
        self._pending[number] = pending
        try:
            helper.send(Start(run=number, slot=slot, command=command, launcher=launcher))
            await pending.over.wait()
        finally:
            if not pending.over.is_set():
                with anyio.CancelScope(shield=True):
                    helper.send(Stop(run=number))
                    await pending.over.wait()
            del self._pending[number]
        return pending.verdict

    def use(self, launchers: Sequence[LauncherName]) -> None:
        """Start commands by these launchers from now on, whichever helper is up."""
        self._launchers = tuple(launchers)
        self._send(Use(launchers=self._launchers))

    def suspend(self, slot: int) -> None:
        """Hold what runs in a slot, now or later; its limits do not count the time."""
        self._suspended.add(slot)
        self._send(Suspend(slot=slot))

    def resume(self, slot: int) -> None:
        """Let what runs in a slot go on, if it was suspended."""
        if slot in self._suspended:
            self._suspended.remove(slot)
            self._send(Resume(slot=slot))

    def _send(self, message: ToSpawner) -> None:
        if self._helper is not None:
            self._helper.send(message)

    async def serve(self) -> None:
        """Keep a helper up, and hand its verdicts out, until `close` or until the first one does not come up."""
        while True:
            try:
                await self._live()
            except (SandboxUnavailable, OSError) as error:
                self._refusal = error
            self._first_answer.set()
            if self._closing or self._report is None:
                return
            log.error("sandbox.spawner_lost", reason=str(self._refusal or ""))
            await anyio.sleep(_RESTART_SECONDS)

    async def _live(self) -> None:
        helper = await Helper.start(self._config)
        try:
            report = await helper.ready()
            if report is not None:
                self._came_up(helper, report)
                self.use(self._launchers)
                for slot in self._suspended:
                    helper.send(Suspend(slot=slot))
                await helper.listen(self._hand_out)
        finally:
            self._went_down()
            await helper.gone()

    def _hand_out(self, message: Finished) -> None:
        pending = self._pending.get(message.run)
        if pending is not None:
            pending.verdict = message.verdict
            pending.over.set()

    def _came_up(self, helper: Helper, report: Report) -> None:
        policy.enforce(self._config.mode, report)
        self._helper, self._report = helper, report
        self._up.set()
        self._first_answer.set()

    def _went_down(self) -> None:
        if self._helper is not None:
            self._helper, self._up = None, anyio.Event()
        for pending in self._pending.values():
            pending.over.set()

    def close(self) -> None:
        """End the helper and all that it runs; `serve` returns when it is gone."""
        self._closing = True
        if self._helper is not None:
            self._helper.hang_up()
