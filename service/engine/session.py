"""One run of the converter that reads an upload, waits, writes what a plan says and rereads it.

What it holds in memory replaces the work file: the same tables, identified and edited in the same way. If a plan needs
more than the run can do, the run saves what it holds as the work file, from which the conversion continues. All its
answers are untrusted until they fit their record.
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
"""The wait status of a process that exits with code 1."""


class Answer(msgspec.Struct, frozen=True):
    """The part common to all answers: whether the run succeeded, and the converter's messages."""

    ok: bool
    messages: Annotated[str, Meta(max_length=1 << 17)]


class SessionOver(Exception):
    """The run ended without an answer; its verdict says how."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.ending)
        self.verdict = verdict

    @property
    def is_no_loss(self) -> bool:
        """Whether the same can be tried without a session: the run exited by itself.

        A run without support for sessions also does so: if the fork server was not up, its command started elsewhere.
        """
        return self.verdict.ending is Ending.EXIT


class Session:
    """Runs commands like any `Run`, and holds one open between them.

    Another command can start only when the open run has ended, so it is ended first.
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
        """The drivers to register in addition to those that read the upload; none if no upload is to be held."""
        self.environment = environment
        """What writing and rereading require in addition to reading."""
        self._talk: Conversation | None = None
        self._over = asyncio.Event()
        self._verdict = Verdict(ending=Ending.INTERNAL, detail="the run has not ended")
        self._failure: Exception | None = None
        self.changes: Mapping[str, Sequence[tuple[int, str, str]]] = {}
        """For each table that is held: the columns that are data, by position, name and type."""
        self.held: Mapping[str, Sequence[tuple[int, str, str]]] = {}
        """For each table that is held: all its columns, as `alter` would keep them."""

    @property
    def is_open(self) -> bool:
        """Whether a run is held open."""
        return self._talk is not None

    @property
    def share(self) -> float | None:
        """Which share of the current question the open run has done, from 0 to 1; None if that is unknown."""
        return self._talk.share if self._talk is not None else None

    async def __call__(self, command: Command) -> Verdict:
        """Run a command once the open run has ended successfully.

        Raises:
            SessionOver: it did not.
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
        except Exception as failure:  # noqa: BLE001 - raised again by `ask` and `finish`
            self._failure = failure
        finally:
            self._over.set()
            talk.end()

    async def ask(self, kind: type[T], *texts: str) -> T:
        """Ask the open run, and return its answer as a record of the type `kind`.

        Raises:
            SessionOver: it ended, or its answer is not such a record.
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
        """Rename a table that is held, and give it these columns: by position, new name, and type or "same"."""
        listed = [text for place, column, kind in columns for text in (str(place), column, kind)]
        return await self.ask(Answer, "alter", table, name, *listed)

    async def translate(self, target: str, arguments: Iterable[str], detour: str = "") -> Verdict:
        """Convert what is held, or the virtual file `detour` if given; return the verdict that ogr2ogr would get."""
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
        """End the open run, whatever its verdict."""
        if self._talk is not None:
            await self._end()

    async def finish(self) -> None:
        """End the open run, if there is one.

        Raises:
            SessionOver: it did not succeed: it exceeded its limits, or there was not enough space.
        """
        if self._talk is None:
            return
        await self._end()
        if self._verdict.ending is not Ending.OK:
            raise SessionOver(self._verdict)

    def hang_up(self) -> None:
        """Tell the open run that no more questions follow, without waiting for its end."""
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
    """A `Session` on `run`, which leaves no run open at the end; `Session` describes `drivers` and `environment`.

    Raises:
        SessionOver: the last open run did not succeed.
    """
    failure: Exception | None = None
    async with asyncio.TaskGroup() as tasks:
        held = Session(run, tasks, drivers, environment)
        try:
            yield held
            await held.finish()
        except Exception as error:  # noqa: BLE001 - the task group would wrap it
            failure = error
            await _abandoned(held)
        finally:
            held.hang_up()
    if failure is not None:
        raise failure


async def _abandoned(held: Session) -> None:
    with suppress(Exception):  # only the first failure is reported
        await held.abandon()
