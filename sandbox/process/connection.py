"""The service's end of the connection: sends commands, receives verdicts, and replaces a lost helper."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import structlog

from sandbox.command import Command
from sandbox.config import Config, LauncherName
from sandbox.isolation import policy
from sandbox.isolation.policy import SandboxUnavailable
from sandbox.process.helper import Helper
from sandbox.process.wire import Finished, Resume, Start, Stop, Suspend, ToSpawner, Use
from sandbox.report import SandboxReport
from sandbox.verdict import Ending, Verdict

log = structlog.get_logger()

_RESTART_SECONDS = 0.2
_PATIENCE_SECONDS = 15


class _Pending:
    """A run that waits for its verdict; the initial verdict stands if the spawner is lost."""

    def __init__(self) -> None:
        self.over = asyncio.Event()
        self.verdict = Verdict(ending=Ending.INTERNAL, detail="the spawner ended before the run did")


class Connection:
    """Runs commands and returns their verdicts."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._pending: dict[int, _Pending] = {}
        self._numbers = itertools.count(1)
        self._helper: Helper | None = None
        self._suspended: set[int] = set()
        self._exempt: set[int] = set()
        self._up = anyio.Event()
        self._first_answer = anyio.Event()
        self._refusal: Exception | None = None
        self._ending = ""
        self._report: SandboxReport | None = None
        self._serving = anyio.CancelScope()
        self._launchers: tuple[LauncherName, ...] = (LauncherName.EXEC,)

    @property
    def is_up(self) -> bool:
        """Whether a helper is up and has passed its probes."""
        return self._helper is not None

    async def opened(self) -> SandboxReport:
        """Wait until the first helper is up.

        Raises:
            SandboxUnavailable: the helper lacks what strict mode requires, or did not start.
        """
        await self._first_answer.wait()
        if self._report is None:
            raise self._refusal or SandboxUnavailable(
                "The sandbox's helper process ended while it started. It needs memory, processes and open files: see "
                "`ulimit -a`."
            )
        return self._report

    async def run(self, slot: int, command: Command, launcher: LauncherName | None = None) -> Verdict:
        """Run a command to its verdict; cancellation first ends the run and waits until no process of it is left.

        With `launcher`, only that launcher may start it.
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
        """Use only these launchers from now on, also in later helpers."""
        self._launchers = tuple(launchers)
        self._send(Use(launchers=self._launchers))

    def suspend(self, slot: int) -> None:
        """Suspend what runs in a slot, now or later; the time does not count towards its limits."""
        self._suspended.add(slot)
        if slot not in self._exempt:
            self._send(Suspend(slot=slot))

    def resume(self, slot: int) -> None:
        """Resume what runs in a slot, if it was suspended."""
        if slot in self._suspended:
            self._suspended.remove(slot)
            self._send(Resume(slot=slot))

    @contextmanager
    def exempt(self, slot: int) -> Iterator[None]:
        """Let what runs in a slot inside the block go on, even if the slot is suspended; what comes later is not."""
        self._exempt.add(slot)
        if slot in self._suspended:
            self._send(Resume(slot=slot))
        try:
            yield
        finally:
            self._exempt.remove(slot)
            if slot in self._suspended:
                self._send(Suspend(slot=slot))

    def _send(self, message: ToSpawner) -> None:
        if self._helper is not None:
            self._helper.send(message)

    async def serve(self) -> None:
        """Keep a helper up and deliver its verdicts, until `close` or until the first one fails to start."""
        with self._serving:
            while True:
                self._refusal, self._ending = None, ""
                try:
                    await self._live()
                except (SandboxUnavailable, OSError) as error:
                    self._refusal = error
                self._first_answer.set()
                if self._report is None:
                    return
                log.error("sandbox.spawner_lost", reason=str(self._refusal or self._ending))
                await anyio.sleep(_RESTART_SECONDS)

    async def _live(self) -> None:
        helper = await Helper.start(self._config)
        try:
            report = await helper.ready()
            if report is not None:
                self._came_up(helper, report)
                self.use(self._launchers)
                for slot in self._suspended - self._exempt:
                    helper.send(Suspend(slot=slot))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(helper.end_if_silent)
                    await helper.listen(self._hand_out)
                    tasks.cancel_scope.cancel()
        finally:
            self._went_down()
            self._ending = await helper.gone()

    def _hand_out(self, message: Finished) -> None:
        pending = self._pending.get(message.run)
        if pending is not None:
            pending.verdict = message.verdict
            pending.over.set()

    def _came_up(self, helper: Helper, report: SandboxReport) -> None:
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
        """End the helper, even one that is not ready yet, and all its runs; `serve` returns when it has ended."""
        self._serving.cancel()
