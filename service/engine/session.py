"""One run of the converter that reads an upload, waits, writes what a plan says and rereads it.

What it holds in memory stands for the work file: the same tables, told apart and edited in the same way. Where a plan
needs more than it can do, it saves what it holds as the work file, and the way goes on from there. All that it answers
is untrusted until it fits its record.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from sandbox.command import Command, Limits
from sandbox.conversation import ANSWERS, QUESTIONS, Conversation
from sandbox.verdict import Ending, ProcessEnd, Verdict, judge
from service.engine.environment import VIRTUAL_DRIVER

T = TypeVar("T", bound="Answer")
FAILED = 1 << 8
"""The status of a process that ends with the code 1."""


class Answer(msgspec.Struct, frozen=True):
    """What every answer says: whether it went well, and the converter's messages."""

    ok: bool
    messages: Annotated[str, Meta(max_length=1 << 17)]


class SessionOver(Exception):
    """The run has ended without an answer; its verdict says how."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.ending)
        self.verdict = verdict

    @property
    def is_no_loss(self) -> bool:
        """Whether the same can be tried without a session: the run has ended by itself.

        So does a run that knows no sessions, because the fork server was not up and its command started elsewhere.
        """
        return self.verdict.ending is Ending.EXIT


class Session:
    """Runs commands as any `Run` does, and holds one open between them while its answers are wanted.

    Another command can only start when that one has ended, so it is ended first.
    """

    def __init__(
        self,
        run: Callable[[Command], Awaitable[Verdict]],
        tasks: asyncio.TaskGroup,
        drivers: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self._run = run
        self._tasks = tasks
        self.drivers = tuple(drivers)
        """What has to be registered besides what reads the upload; nothing where no upload is to be held."""
        self.environment = environment
        """What writing and rereading need besides what reading does."""
        self._talk: Conversation | None = None
        self._over = asyncio.Event()
        self._verdict = Verdict(ending=Ending.INTERNAL, detail="the run has not ended")
        self._failure: Exception | None = None
        self.changes: Mapping[str, Sequence[tuple[int, str, str]]] = {}
        """For each table that is held: the columns of it that are data, by place, name and type."""

    @property
    def is_open(self) -> bool:
        """Whether a run is held open."""
        return self._talk is not None

    async def __call__(self, command: Command) -> Verdict:
        """Run a command, after the open one has ended well.

        Raises:
            SessionOver: it has not.
        """
        await self.finish()
        return await self._run(command)

    def begin(self, program: str, directory: Path, environment: Mapping[str, str], limits: Limits) -> None:
        """Start the run that is held open, in `directory`."""
        self._talk = Conversation(str(directory))
        self._over = asyncio.Event()
        argv = (program, "--session", QUESTIONS, ANSWERS)
        command = Command(argv=argv, directory=directory, environment=environment, limits=limits)
        self._tasks.create_task(self._hold(command, self._talk))

    async def _hold(self, command: Command, talk: Conversation) -> None:
        try:
            self._verdict = await self._run(command)
        except Exception as failure:  # noqa: BLE001 - raised again where the run is asked, or ended
            self._failure = failure
        finally:
            self._over.set()
            talk.end()

    async def ask(self, kind: type[T], *texts: str) -> T:
        """Ask the open run; its answer as a record of the type `kind`.

        Raises:
            SessionOver: it has ended, or answers something else.
        """
        if self._talk is None:
            raise LookupError("no run is open")
        answer = await self._talk.ask(*texts)
        if not answer:
            await self._end()
            raise SessionOver(self._verdict)
        try:
            return msgspec.json.decode(answer, type=kind)
        except (msgspec.ValidationError, msgspec.DecodeError):
            await self._end()
            raise SessionOver(Verdict(ending=Ending.EXIT, exit_code=1)) from None

    async def open(self, name: str, drivers: Iterable[str], options: Iterable[str]) -> Answer:
        """Open a file with one of `drivers` and no other."""
        return await self.ask(Answer, "open", name, *drivers, "", *options, "")

    async def alter(self, table: str, name: str, columns: Iterable[tuple[int, str, str]]) -> Answer:
        """Give a table that is held another name and these columns: by place, new name and type or "same"."""
        listed = [text for place, column, kind in columns for text in (str(place), column, kind)]
        return await self.ask(Answer, "alter", table, name, *listed)

    async def translate(self, target: str, arguments: Iterable[str], detour: str = "") -> Verdict:
        """Convert what is held or open, or else the virtual file `detour`, as ogr2ogr does; how its run would end."""
        try:
            done = await self.open(detour, (VIRTUAL_DRIVER,), ()) if detour else None
            if done is None or done.ok:
                done = await self.ask(Answer, "translate", target, *arguments)
        except SessionOver as over:
            return over.verdict
        messages = done.messages.encode()
        end = ProcessEnd(wait_status=0 if done.ok else FAILED, untrusted_stderr=messages)
        return Verdict(ending=judge(end), exit_code=end.exit_code, untrusted_stderr=messages)

    async def abandon(self) -> None:
        """End the open run, however it ends."""
        if self._talk is not None:
            await self._end()

    async def finish(self) -> None:
        """End the open run, if there is one.

        Raises:
            SessionOver: it has not ended well: it has gone beyond its limits, or no room was left.
        """
        if self._talk is None:
            return
        await self._end()
        if self._verdict.ending is not Ending.OK:
            raise SessionOver(self._verdict)

    def hang_up(self) -> None:
        """Let the open run know that nothing more is asked, without waiting for its end."""
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    async def _end(self) -> None:
        if self._talk is not None:
            self.hang_up()
            await self._over.wait()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


@asynccontextmanager
async def session(
    run: Callable[[Command], Awaitable[Verdict]], drivers: Sequence[str], environment: Mapping[str, str]
) -> AsyncIterator[Session]:
    """A `Session` on `run`, of which no run is left open at the end; see there for `drivers` and `environment`.

    Raises:
        SessionOver: the last run that was open has not ended well.
    """
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        held = Session(run, tasks, drivers, environment)
        try:
            yield held
            await held.finish()
        except Exception as error:  # noqa: BLE001 - a group of tasks would wrap it
            failure = error
            await _abandoned(held)
        finally:
            held.hang_up()
    if failure is not None:
        raise failure


async def _abandoned(held: Session) -> None:
    with suppress(Exception):  # only the first failure is reported
        await held.abandon()
