"""Questions that a process without GDAL asks any worker: messages that are not stored, each with one answer.

The subject of a question has its version, so that it comes only to workers that understand it; the answer is of the
same version. If no such worker is there, the server says so at once.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
import nats.errors
from anyio.abc import TaskGroup
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from service.errors import Overloaded

VERSION: Final = 1
READS: Final = (VERSION,)
"""The versions that this process answers: also the previous one, as workers are updated before gateways."""
_ASKED: Final = "geomill.ask"
_WORKERS: Final = "workers"
_NO_ANSWER: Final = b""
RETRY_AFTER_SECONDS: Final = 5
UNANSWERED: Final = "No worker can do this at the moment. Send the request again later."

Reply = Callable[[bytes], Awaitable[bytes]]
"""Answers a question; an answer has at least one byte. If it raises, the asker is told that there is none."""


class Questions:
    """Asks and answers by a connection to NATS."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._answered: list[Subscription] = []

    async def ask(self, topic: str, question: bytes, seconds: float) -> bytes:
        """Ask one worker and wait for the answer.

        Raises:
            Overloaded: there is none within `seconds`.
        """
        answer = _NO_ANSWER
        with suppress(nats.errors.Error, TimeoutError):
            if self._connection.is_connected:
                subject = subject_of(topic, VERSION)
                answer = (await self._connection.request(subject, question, timeout=seconds)).data
        if answer == _NO_ANSWER:
            raise Overloaded(UNANSWERED, RETRY_AFTER_SECONDS)
        return answer

    async def answer(self, topic: str, reply: Reply, tasks: TaskGroup) -> None:
        """Answer questions from now on, each in a task of its own; `reply` reports its errors itself."""

        async def hear(message: Msg) -> None:
            tasks.start_soon(self._answer, message, reply)

        for version in READS:
            subject = subject_of(topic, version)
            self._answered.append(await self._connection.subscribe(subject, queue=_WORKERS, cb=hear))

    async def leave(self) -> None:
        """Answer no further questions."""
        while self._answered:
            with suppress(nats.errors.Error):
                await self._answered.pop().unsubscribe()

    async def _answer(self, message: Msg, reply: Reply) -> None:
        answer = _NO_ANSWER
        try:
            answer = await reply(message.data)
        finally:
            with anyio.CancelScope(shield=True), suppress(nats.errors.Error):
                await message.respond(answer)


def subject_of(topic: str, version: int) -> str:
    """Return the subject on which workers are asked; that of version 1 does not name it."""
    return f"{_ASKED}.{topic}" if version == 1 else f"{_ASKED}.{topic}.{version}"
