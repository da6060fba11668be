"""A run that is held open: how it ends with the conversion that holds it."""

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import anyio
import msgspec
import pytest

from sandbox.command import Command, Limits
from sandbox.conversation import ANSWERS, QUESTIONS
from sandbox.verdict import Ending, Verdict
from service.engine.jailed.places import Wanted
from service.engine.session import Answer, NotOpened, Session, SessionOver
from service.engine.session_csv import make_table
from service.engine.session_edits import tidy
from service.engine.session_facts import Seen
from service.errors import Rejection

pytestmark = pytest.mark.anyio
LENGTH = struct.Struct("=I")
NO_ROOM = Verdict(ending=Ending.DISK_FULL)


class _Lost(Exception):
    """The run was lost."""


class _Run:
    """A run that ends when told, or at the end of its questions, and takes its time when it is cancelled."""

    def __init__(self, end: Callable[[], Awaitable[Verdict]]) -> None:
        self.has_ended = False
        self._end = end

    async def __call__(self, command: Command) -> Verdict:
        assert command.argv[1:] == ("--session", QUESTIONS, ANSWERS)
        try:
            return await self._end()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
            self.has_ended = True


async def _lost() -> Verdict:
    raise _Lost


async def _full() -> Verdict:
    return NO_ROOM


async def _endless() -> Verdict:
    await anyio.sleep_forever()
    raise AssertionError


async def _ask(run: _Run, directory: Path) -> None:
    async with _begun(run, directory) as held:
        await held.ask(Answer, "open")


async def _fail(run: _Run, directory: Path) -> None:
    async with _begun(run, directory):
        raise LookupError("first")


@asynccontextmanager
async def _begun(run: Callable[[Command], Awaitable[Verdict]], directory: Path) -> AsyncIterator[Session]:
    """A session with an open run."""
    async with Session(run, (), {}) as held:
        held.begin("/bin/true", directory, {}, Limits())
        yield held


class _Answering:
    """A run that answers its questions in turn, with its own words or what is to be said of some."""

    def __init__(self, **answers: bytes) -> None:
        self.asked: list[str] = []
        self._answers = answers

    async def __call__(self, command: Command) -> Verdict:
        try:
            await asyncio.to_thread(self._answer, command.directory)
        except BrokenPipeError:
            return Verdict(ending=Ending.SIGNAL)
        return Verdict(ending=Ending.OK)

    def _answer(self, directory: Path) -> None:
        with (directory / QUESTIONS).open("rb") as questions, (directory / ANSWERS).open("wb", 0) as answers:
            while head := questions.read(LENGTH.size):
                words = questions.read(*LENGTH.unpack(head)).decode().split("\0")
                self.asked.append(words[0])
                answer = self._answers.get(words[0], msgspec.json.encode(Answer(ok=True, messages=words[0])))
                answers.write(LENGTH.pack(len(answer)) + answer)


async def test_a_question_that_follows_as_foreseen_is_asked_once(tmp_path: Path) -> None:
    run = _Answering()
    async with _begun(run, tmp_path) as held:
        told = [await held.ask(Answer, "open", "a", then=("load", "")), await held.ask(Answer, "load", "")]
    assert [each.messages for each in told] == run.asked == ["open", "load"]


async def test_what_was_foreseen_may_itself_be_followed_by_a_question(tmp_path: Path) -> None:
    run = _Answering()
    async with _begun(run, tmp_path) as held:
        told = [await held.ask(Answer, "open", then=("load",)), await held.ask(Answer, "load", then=("count",))]
        told.append(await held.ask(Answer, "count"))
    assert [each.messages for each in told] == run.asked == ["open", "load", "count"]


async def test_nothing_is_opened_once_the_output_is_written(tmp_path: Path) -> None:
    run = _Answering()
    async with _begun(run, tmp_path) as held:
        held.open_first("in0.geojson", ("GeoJSON",), ())
        held.forget()
        await held.ask(Answer, "count")
    assert run.asked == ["count"]


async def test_the_answer_to_what_was_foreseen_in_vain_is_dropped(tmp_path: Path) -> None:
    run = _Answering()
    async with _begun(run, tmp_path) as held:
        told = [await held.ask(Answer, "open", then=("load", "")), await held.ask(Answer, "load", "4326")]
        told.append(await held.ask(Answer, "count"))
    assert [each.messages for each in told] == ["open", "load", "count"]
    assert run.asked == ["open", "load", "load", "count"]


async def test_a_run_that_answers_what_nobody_asks_any_more_ends_well(tmp_path: Path) -> None:
    run = _Answering()
    async with _begun(run, tmp_path) as held:
        held.foreseen = {"out/a.shp": ("count", "out/a.shp")}
        await held.translate("out/a.shp", ())
    assert run.asked == ["translate", "count"]


async def test_more_columns_than_fit_into_an_answer_are_not_read(tmp_path: Path) -> None:
    """Half a million would occupy the service for seconds, in hundreds of megabytes."""
    layer = (
        b'{"name":"a","table":"t0","has_geometry_column":false,"system":"none","epsg":0,"features":0,"geometries":0,'
    )
    layer += b'"has_z":false,"flat_geometries":0,"sloping_areas":0,"has_m":false,"unmeasured_geometries":0,'
    layer += b'"longest_geometry_bytes":0,"codes":{},"extent":null,"first_beyond_degrees":0,"columns":[%b]}'
    layers = layer % b",".join([b'{"name":"b","type":"text"}'] * 1000)
    for times, is_read in ((2, True), (40, False)):
        run = _Answering(load=b'{"ok":true,"messages":"","layers":[%b]}' % b",".join([layers] * times))
        async with _begun(run, tmp_path) as held:
            if is_read:
                assert len((await held.ask(Seen, "load", "")).layers) == times
            else:
                with pytest.raises(SessionOver, match="exit"):
                    await held.ask(Seen, "load", "")


@pytest.mark.parametrize(("count", "is_read"), [(Answer.most_commas - 2, True), (Answer.most_commas, False)])
async def test_more_values_than_are_read_in_a_moment_are_no_answer(
    tmp_path: Path, count: int, *, is_read: bool
) -> None:
    """Four million texts would occupy the service for a third of a second before they are found to be too many."""
    values = b'"",' * count
    async with _begun(_Answering(count=b'{"ok":true,"messages":"","more":[%b""]}' % values), tmp_path) as held:
        with nullcontext() if is_read else pytest.raises(SessionOver, match="exit"):
            assert (await held.ask(Answer, "count")).ok
        await held.abandon()


async def test_a_file_is_opened_with_the_first_question(tmp_path: Path) -> None:
    run = _Answering()
    async with _begun(run, tmp_path) as held:
        held.open_first("in0.geojson", ("GeoJSON",), ())
        assert (await held.translate("out/a.shp", ())).untrusted_stderr == b"translate"
        assert (await held.ask(Answer, "count")).messages == "count"
    assert run.asked == ["open", "translate", "count"]


@pytest.mark.parametrize("refusal", [b'{"ok":false,"messages":"damaged"}', b"no record"])
async def test_a_file_that_cannot_be_opened_is_told_in_place_of_an_answer(tmp_path: Path, refusal: bytes) -> None:
    async with _begun(_Answering(open=refusal), tmp_path) as held:
        held.open_first("in0.geojson", ("GeoJSON",), ())
        with pytest.raises(NotOpened):
            await held.translate("out/a.shp", ())
        await held.abandon()


async def test_a_cancelled_conversion_ends_its_run_first(tmp_path: Path) -> None:
    run, asked = _Run(_endless), anyio.Event()

    async def convert() -> None:
        try:
            async with _begun(run, tmp_path) as held:
                asked.set()
                await held.ask(Answer, "open")
        finally:
            assert run.has_ended

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(convert)
        await asked.wait()
        tasks.cancel_scope.cancel()
    assert run.has_ended


async def test_a_conversion_that_is_cancelled_again_still_waits_for_its_run(tmp_path: Path) -> None:
    run = _Run(_endless)
    conversion = asyncio.ensure_future(_ask(run, tmp_path))
    for _ in range(3):
        await anyio.sleep(0.001)
        conversion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await conversion
    assert run.has_ended


async def test_a_conversion_that_is_cancelled_while_its_run_ends_waits_for_it(tmp_path: Path) -> None:
    run = _Run(_endless)
    with anyio.move_on_after(0.01) as scope:
        async with _begun(run, tmp_path) as held:
            await held.finish()
    assert scope.cancelled_caught
    assert run.has_ended


@pytest.mark.parametrize(("end", "kind"), [(_lost, _Lost), (_full, SessionOver)])
async def test_the_end_of_the_run_is_told_to_who_asks(
    tmp_path: Path, end: Callable[[], Awaitable[Verdict]], kind: type[Exception]
) -> None:
    run = _Run(end)
    with pytest.raises(kind):
        await _ask(run, tmp_path)
    assert run.has_ended


@pytest.mark.parametrize(("end", "kind"), [(_lost, _Lost), (_full, SessionOver)])
async def test_a_run_that_nobody_asks_is_not_taken_for_a_success(
    tmp_path: Path, end: Callable[[], Awaitable[Verdict]], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        async with _begun(_Run(end), tmp_path):
            pass


async def test_the_first_failure_is_the_one_that_is_told(tmp_path: Path) -> None:
    run = _Run(_lost)
    with pytest.raises(LookupError, match="first"):
        await _fail(run, tmp_path)
    assert run.has_ended


async def test_a_step_without_room_ends_as_a_run_without_room(tmp_path: Path) -> None:
    """So that it is told as a lack of space, and is no defect of the service."""
    run = _Answering(gather=msgspec.json.encode(Answer(ok=False, messages="ERROR 28: No space left on device\n")))
    async with _begun(run, tmp_path) as held:
        assert (await held.carry_out("gather", "in", "out")).ending is Ending.DISK_FULL
        assert (await held.carry_out("lines", "in", "out")).ending is Ending.OK


async def test_a_run_that_ends_well_without_an_answer_has_done_nothing(tmp_path: Path) -> None:
    """Its result would be missed, or taken for one that cannot be read back."""

    async def ends_at_once(_: Command) -> Verdict:
        return Verdict(ending=Ending.OK)

    async with _begun(ends_at_once, tmp_path) as held:
        assert (await held.translate("out/a.gpkg", ())).ending is Ending.EXIT


async def test_a_table_that_a_run_does_not_alter_is_no_defect(tmp_path: Path) -> None:
    """It may lack memory for that, and one that was taken over may say anything."""
    answer = msgspec.json.encode(Answer(ok=False, messages="ERROR 2: out of memory"))
    async with _begun(_Answering(alter=answer), tmp_path) as held:
        held.changes, held.held = {"a": [(1, "b", "same")]}, {"a": []}
        with pytest.raises(Rejection, match="more memory than allowed"):
            await tidy(held)


@pytest.mark.parametrize("answer", [b"", b"{}", b'{"ok":false,"messages":""}'])
async def test_a_step_that_a_run_does_not_take_is_no_defect(tmp_path: Path, answer: bytes) -> None:
    """Only one that was taken over refuses it without a reason."""
    async with _begun(_Answering(declare=answer), tmp_path) as held:
        with pytest.raises(Rejection, match="could not be converted"):
            await held.do("declare", "out/a.gml")


async def test_a_table_of_which_a_run_says_no_delimiter_is_left_to_the_other_program(tmp_path: Path) -> None:
    """Ours names one of each table that it reads; one that was taken over may say anything."""
    async with _begun(_Answering(look=b'{"ok":true,"messages":""}'), tmp_path) as held:
        assert await make_table(held, "in.csv", Wanted(), "") is None


ODD_ANSWERS = {"nested": b'{"x":' + b"[" * 100_000, "no text": b'{"ok":true,"messages":"\xff"}', "a list": b"[]"}


@pytest.mark.parametrize("answer", list(ODD_ANSWERS.values()), ids=list(ODD_ANSWERS))
async def test_an_answer_that_no_run_of_ours_gives_is_none(tmp_path: Path, answer: bytes) -> None:
    """It may be nested without end, or no text at all."""
    async with _begun(_Answering(open=answer), tmp_path) as held:
        with pytest.raises(SessionOver, match="exit"):
            await held.ask(Answer, "open")
