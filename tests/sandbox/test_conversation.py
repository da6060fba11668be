"""Questions and answers between the service and a run, which may send whatever it likes."""

import asyncio
import os
import shutil
import signal
import struct
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from anyio import run_process

from sandbox import forkserver
from sandbox.conversation import ANSWERS, MOST_READS, MOST_REPORTS, Conversation
from tests.support.patience import until

REPORT = 1 << 31
FORK_SERVER = Path(forkserver.__file__).parent
NEEDS_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


async def compiled(directory: Path, name: str, *others: str) -> Path:
    """A program of this directory, with other sources of the fork server's library."""
    program = directory / name.removesuffix(".c")
    sources = (Path(__file__).with_name(name), *(FORK_SERVER / other for other in others))
    await run_process(["cc", "-o", program, *sources, "-lm"])
    return program


class Talk:
    """A conversation, and the end of the run that answers."""

    def __init__(self, directory: Path) -> None:
        self.ours = Conversation(str(directory))
        self._theirs = os.open(directory / ANSWERS, os.O_WRONLY)

    async def send(self, *pieces: bytes) -> None:
        """Send as the run, until all of it has arrived."""
        for piece in pieces:
            await asyncio.to_thread(os.write, self._theirs, piece)

    def send_now(self, piece: bytes) -> None:
        """Send what fits into the pipe."""
        os.write(self._theirs, piece)

    def close(self) -> None:
        """End both."""
        self.ours.close()
        os.close(self._theirs)


@pytest.fixture
async def talk(tmp_path: Path) -> AsyncIterator[Talk]:
    """A conversation that nobody else takes part in."""
    opened = Talk(tmp_path)
    yield opened
    opened.close()


def report(permille: int) -> bytes:
    """A report of how much is done."""
    return struct.pack("=I", REPORT | permille)


def answer(body: bytes) -> bytes:
    """An answer."""
    return struct.pack("=I", len(body)) + body


def told(talk: Talk, share: float | None) -> bool:
    """Whether the last report said this."""
    return talk.ours.share == share


async def ask(talk: Talk) -> bytes:
    """Ask something, and wait for the answer."""
    await talk.ours.say(("load",))
    return await talk.ours.receive()


async def test_reports_come_before_an_answer(talk: Talk) -> None:
    """Also in pieces; the last one counts, none says more than all, and an answer ends what they said."""
    for sent, share in ((report(250), 0.25), (report(500) + report(750), 0.75), (report(5000), 1.0)):
        asked = asyncio.create_task(ask(talk))
        await talk.send(sent[:3], sent[3:])
        await until(partial(told, talk, share))
        await talk.send(answer(b"{}")[:5], answer(b"{}")[5:])
        assert await asked == b"{}"
        assert told(talk, None)


async def test_a_run_that_only_reports_is_not_heard_for_ever(talk: Talk) -> None:
    """The conversation ends, as with one that answers too much."""
    asked = asyncio.create_task(ask(talk))
    await talk.send(*[report(1) * 1000] * (MOST_REPORTS // 1000), report(1))
    assert await asked == b""


async def test_a_run_that_sends_single_bytes_is_not_heard_for_ever(talk: Talk) -> None:
    """Each wakes the service, which it costs much more than the run."""
    asked = asyncio.create_task(ask(talk))
    await talk.send(answer(bytes(3 * MOST_READS))[:4])
    for _ in range(3 * MOST_READS):
        if asked.done():
            break
        talk.send_now(b"x")
        await asyncio.sleep(0)
    assert await asked == b""


async def test_what_a_run_has_answered_is_heard_after_its_end(talk: Talk) -> None:
    """It died while it answered the next question; the answer before that is whole."""
    await talk.ours.say(("translate",), ("count",))
    await talk.send(answer(b"{}") + answer(b"[]")[:5])
    talk.ours.end()
    assert await talk.ours.receive() == b"{}"
    assert await talk.ours.receive() == b""


@NEEDS_COMPILER
async def test_a_run_that_takes_a_day_is_heard_to_its_end(tmp_path: Path) -> None:
    """It reports less and less often, so that it is not taken for one that only reports."""
    sent = (await run_process([await compiled(tmp_path, "reports.c")])).stdout
    assert 1000 < len(sent) // len(report(0)) < MOST_REPORTS


@NEEDS_COMPILER
async def test_a_run_that_nobody_asks_anything_ends_by_a_signal(tmp_path: Path) -> None:
    """It has not done what it is asked later, and the file is not the cause."""
    program = await compiled(tmp_path, "patience.c")
    assert (await run_process([program], check=False)).returncode == -signal.SIGALRM


@NEEDS_COMPILER
async def test_texts_that_begin_within_a_character_change_nothing_before_them(tmp_path: Path) -> None:
    """What the values of a column have in common ends at a whole character, if there is one."""
    program = await compiled(tmp_path, "prefix.c", "text_kinds.c", "utf_8.c")
    assert (await run_process([program], check=False)).returncode == 0
