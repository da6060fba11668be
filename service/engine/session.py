"""One run of the converter that reads an upload, waits, writes what a plan says and rereads it.

What it holds in memory replaces the work file: the same tables, identified and edited in the same way. If a plan needs
more than the run can do, the run saves what it holds as the work file, from which the conversion continues. All its
answers are untrusted until they fit their record.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Annotated, ClassVar, Self, TypeVar

import msgspec
from msgspec import Meta

from sandbox.command import Command, Limits
from sandbox.conversation import ANSWERS, QUESTIONS, Conversation
from sandbox.verdict import Ending, ProcessEnd, Verdict, judge
from service.cancellation import outlast
from service.engine.diagnostics import rejection
from service.engine.environment import VIRTUAL_DRIVER

T = TypeVar("T", bound="Answer")
FAILED = 1 << 8
"""The wait status of a process that exits with code 1."""
LIED = Verdict(ending=Ending.EXIT, exit_code=1)
"""In place of the verdict of a run that gives no answer that fits, or exits with code 0 before it has answered."""
NOT_AS_EXPECTED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises if untrusted JSON is not the record that is expected, is no text or is nested too deeply."""
Traced = Callable[[str], AbstractContextManager[object]]
"""Returns what is entered while a question of this name is answered."""
_NOT_TRACED = nullcontext()


def untraced(_question: str) -> AbstractContextManager[object]:
    """Trace nothing."""
    return _NOT_TRACED


class Answer(msgspec.Struct, frozen=True):
    """The part common to all answers: whether the run succeeded, and the converter's messages."""

    most_objects: ClassVar[int] = 1 << 19
    """How many objects one may consist of: a run that was taken over could send more than are read in a moment."""
    most_commas: ClassVar[int] = 1 << 20
    """The same for values of any kind: a list is bounded only once all of it is read."""
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


class NotOpened(Exception):
    """The open run could not open a file; without a session, the converter gives its own reason."""


def _opening(name: str, drivers: Iterable[str], options: Iterable[str]) -> tuple[str, ...]:
    return ("open", name, *drivers, "", *options, "")


class Session:
    """Runs commands like any `Run`, and holds one open between them, but none beyond the block in which it is entered.

    Another command can start only when the open run has ended, so it is ended first. At the end of the block it raises
    `SessionOver` if the last open run did not succeed.
    """

    def __init__(
        self,
        run: Callable[[Command], Awaitable[Verdict]],
        drivers: Sequence[str],
        environment: Mapping[str, str],
        traced: Traced = untraced,
    ) -> None:
        self._run = run
        self._traced = traced
        self.drivers = tuple(drivers)
        """The drivers to register in addition to those that read the upload."""
        self.environment = environment
        """What rereading requires in addition to reading."""
        self._talk: Conversation | None = None
        self._running: asyncio.Task[None] | None = None
        self._outcome: asyncio.Future[Verdict]
        self._settings: Mapping[str, str] = {}
        self._first: tuple[str, ...] = ()
        self._sent: tuple[str, ...] = ()
        self.foreseen: dict[str, tuple[str, ...]] = {}
        """For the name of a target: the question that probably follows once it is written."""
        self.changes: Mapping[str, Sequence[tuple[int, str, str]]] = {}
        """For each table that is held: the columns that are data, by position, name and type."""
        self.held: Mapping[str, Sequence[tuple[int, str, str]]] = {}
        """For each table that is held: all its columns, as `alter` would keep them."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.finish()
            elif isinstance(error, Exception):
                with suppress(Exception):  # only the first failure is reported
                    await self.abandon()
        finally:
            await self._cancel()

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
        self._settings = environment
        self._talk = talk = Conversation(str(directory))
        self._first = self._sent = ()
        self._outcome = asyncio.get_running_loop().create_future()
        argv = (program, "--session", QUESTIONS, ANSWERS)
        command = Command(argv=argv, directory=directory, environment=environment, limits=limits)
        running = self._hold(command, talk, self._outcome)
        self._running = asyncio.create_task(running)  # noqa: TID251 -- `_end` and `_cancel` wait for it

    async def _hold(self, command: Command, talk: Conversation, outcome: "asyncio.Future[Verdict]") -> None:
        """Run the command that is held open; nobody may wait for its outcome any more."""
        try:
            verdict = await self._run(command)
            if not outcome.done():
                outcome.set_result(verdict)
        except Exception as error:  # noqa: BLE001 -- raised by `_end`, if anybody still waits
            if not outcome.done():
                outcome.set_exception(error)
                outcome.exception()
        finally:
            outcome.cancel()  # nothing, unless this task is cancelled
            talk.end()

    def open_first(self, name: str, drivers: Iterable[str], options: Iterable[str]) -> None:
        """Have the open run open a file, as `open` does, with the next question; it waits for none in between."""
        self._first = _opening(name, drivers, options)

    def forget(self) -> None:
        """Open nothing with the next question, and foresee none, because the output is written."""
        self._first, self.foreseen = (), {}

    async def ask(self, kind: type[T], *texts: str, then: tuple[str, ...] = ()) -> T:
        """Ask the open run, and return its answer as a record of the type `kind`.

        `then` is the question that probably follows, which the run need not wait for: if the next question is another,
        the answer is dropped.

        Raises:
            SessionOver: it ended, or its answer is not such a record.
            NotOpened: it could not open the file of `open_first`.
        """
        if self._talk is None:
            raise LookupError("no run is open")
        first: tuple[str, ...] = ()
        is_sent = self._sent == texts
        if not is_sent:
            await self.drop_foreseen()
            first, self._first = self._first, ()
        self._sent = then
        await self._talk.say(*filter(None, (first, () if is_sent else texts, then)))
        if first:
            await self._require_opened(first[0])
        return await self._hear(kind, texts[0])

    async def drop_foreseen(self) -> None:
        """Wait for the answer to the question that was foreseen, if there is one; who asks it hears another answer."""
        if self._sent and self._talk is not None:
            await self._talk.receive()
        self._sent = ()

    async def _require_opened(self, question: str) -> None:
        try:
            opened = await self._hear(Answer, question)
        except SessionOver as over:
            if not over.is_no_loss:
                raise
            raise NotOpened from None
        if not opened.ok:
            raise NotOpened

    async def _hear(self, kind: type[T], question: str) -> T:
        with self._traced(question):
            answer = b"" if self._talk is None else await self._talk.receive()
        if not answer:
            verdict = await self._end()
            raise SessionOver(LIED if verdict.ending is Ending.OK else verdict)
        try:
            if answer.count(b"{") <= kind.most_objects and answer.count(b",") <= kind.most_commas:
                return msgspec.json.decode(answer, type=kind)
        except NOT_AS_EXPECTED:
            pass
        await self._end()
        raise SessionOver(LIED)

    async def open(
        self, name: str, drivers: Iterable[str], options: Iterable[str], then: tuple[str, ...] = ()
    ) -> Answer:
        """Open a file with one of `drivers` and no other; see `ask`."""
        return await self.ask(Answer, *_opening(name, drivers, options), then=then)

    async def configure(self, settings: Mapping[str, str]) -> None:
        """Set the options of GDAL that differ from those of the open run, for the next question."""
        different = settings.items() - self._settings.items()
        if different:
            await self.ask(Answer, "configure", *chain.from_iterable(sorted(different)))

    async def alter(self, table: str, name: str, columns: Iterable[tuple[int, str, str]]) -> None:
        """Rename a table that is held, and give it these columns: by position, new name, and type or "same".

        Raises:
            Rejection: this failed.
        """
        listed = [text for place, column, kind in columns for text in (str(place), column, kind)]
        await self.do("alter", table, name, *listed)

    async def do(self, *question: str) -> None:
        """Have the open run do what `question` says.

        Raises:
            Rejection: it did not.
        """
        done = await self.carry_out(*question)
        if done.ending is not Ending.OK:
            raise rejection(done)

    async def translate(self, target: str, arguments: Iterable[str], detour: str = "") -> Verdict:
        """Convert what is held, or the virtual file `detour` if given; return the verdict that ogr2ogr would get."""
        if detour:
            opened = await self.carry_out(*_opening(detour, (VIRTUAL_DRIVER,), ()))
            if opened.ending is not Ending.OK:
                return opened
        return await self.write("translate", target, *arguments)

    async def write(self, command: str, target: str, *texts: str) -> Verdict:
        """Write the result `target` by a command of the open run; return the verdict that ogr2ogr would get."""
        return await self.carry_out(command, target, *texts, then=self.foreseen.pop(target, ()))

    async def carry_out(self, *question: str, then: tuple[str, ...] = ()) -> Verdict:
        """Have the open run do what `question` says; return the verdict that a run of its own would get. See `ask`."""
        try:
            done = await self.ask(Answer, *question, then=then)
        except SessionOver as over:
            return over.verdict
        messages = done.messages.encode()
        if done.ok:
            return Verdict(ending=Ending.OK, exit_code=0, untrusted_stderr=messages)
        end = ProcessEnd(wait_status=FAILED, untrusted_stderr=messages)
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
        await self.drop_foreseen()
        verdict = await self._end()
        if verdict.ending is not Ending.OK:
            raise SessionOver(verdict)

    def hang_up(self) -> None:
        """Tell the open run that no more questions follow, without waiting for its end."""
        if self._talk is not None:
            self._talk.close()
            self._talk = None

    async def _cancel(self) -> None:
        """End the open run, if there is one, at once; returns when no process of it is left."""
        if self._talk is not None:
            self.hang_up()
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await outlast(self._running)

    async def _end(self) -> Verdict:
        if self._running is None:
            raise LookupError("no run is open")
        self.hang_up()
        return await self._outcome  # not the run itself, which would be cancelled with this task, and while it ends
