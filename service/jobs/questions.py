"""Questions that a process without GDAL asks any worker: messages that are not stored, each with one answer."""

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
                answer = (await self._connection.request(f"{_ASKED}.{topic}", question, timeout=seconds)).data
        if answer == _NO_ANSWER:
            raise Overloaded(UNANSWERED, RETRY_AFTER_SECONDS)
        return answer

    async def answer(self, topic: str, reply: Reply, tasks: TaskGroup) -> None:
        """Answer questions from now on, each in a task of its own; `reply` reports its errors itself."""

        async def hear(message: Msg) -> None:
            tasks.start_soon(self._answer, message, reply)

        self._answered.append(await self._connection.subscribe(f"{_ASKED}.{topic}", queue=_WORKERS, cb=hear))

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
