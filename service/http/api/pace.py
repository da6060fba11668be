"""The minimum pace of a download: a slow client may not keep a file or a connection to the store open forever."""

import anyio
from starlette.types import Message, Send

GRACE_SECONDS = 60.0
LEAST_BYTES_PER_SECOND = 16 * 1024


class TooSlowError(Exception):
    """The client has not read the response in time; what is left of it is not sent."""


class PacedSend:
    """Sends the messages of one response, within `GRACE_SECONDS` and the time for their size at the minimum pace."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._until = anyio.current_time() + GRACE_SECONDS

    async def __call__(self, message: Message) -> None:
        """Send a message.

        Raises:
            TooSlowError: the time is up.
        """
        self._until += len(message.get("body", b"")) / LEAST_BYTES_PER_SECOND
        with anyio.move_on_after(self._until - anyio.current_time()) as scope:
            await self._send(message)
        if scope.cancelled_caught:
            raise TooSlowError
