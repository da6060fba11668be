"""A run that is held open: how it ends with the conversion that holds it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from sandbox.command import Command, Limits
from sandbox.conversation import ANSWERS, QUESTIONS
from sandbox.verdict import Ending, Verdict
from service.engine.session import Answer, Session, SessionOver

pytestmark = pytest.mark.anyio
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
    async with Session(run, (), {}) as held:
        _begin(held, directory)
        await held.ask(Answer, "open")


async def _fail(run: _Run, directory: Path) -> None:
    async with Session(run, (), {}) as held:
        _begin(held, directory)
        raise LookupError("first")


def _begin(held: Session, directory: Path) -> None:
    held.begin("/bin/true", directory, {}, Limits())


async def test_a_cancelled_conversion_ends_its_run_first(tmp_path: Path) -> None:
    run, asked = _Run(_endless), anyio.Event()

    async def convert() -> None:
        try:
            async with Session(run, (), {}) as held:
                _begin(held, tmp_path)
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
        async with Session(run, (), {}) as held:
            _begin(held, tmp_path)
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
        async with Session(_Run(end), (), {}) as held:
            _begin(held, tmp_path)


async def test_the_first_failure_is_the_one_that_is_told(tmp_path: Path) -> None:
    run = _Run(_lost)
    with pytest.raises(LookupError, match="first"):
        await _fail(run, tmp_path)
    assert run.has_ended
