"""The messages of the queue one by one, for those who compare it with the database; looking at it creates nothing."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Final

import msgspec
import nats.errors
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from service.errors import QueueUnavailable
from service.ids import JobId
from service.jobs.handover import Message
from service.jobs.queue_faults import ANSWER_SECONDS, RETRY_AFTER_SECONDS
from service.jobs.queue_state import connected
from service.jobs.stream import ANY_JOB, STREAM, job_in
from service.jobs.work_queue import WorkQueue

_NO_STREAM: Final = 404
LIST_SECONDS: Final = 60.0
"""How long the server may take to list a hundred thousand messages; on a busy host it took five seconds."""
OVERLAP: Final = 10_000
"""How many subjects of one part of the list are asked for again with the next."""


class _StoredMessages(msgspec.Struct, frozen=True):
    subjects: dict[str, int] = {}


class _Problem(msgspec.Struct, frozen=True):
    code: int
    description: str = ""


class _Answer(msgspec.Struct, frozen=True):
    """A part of what the server says of a stream; `total` subjects match the filter of the question."""

    state: _StoredMessages = _StoredMessages()
    total: int = 0
    error: _Problem | None = None


class QueueContents:
    """The messages of the queue, by their subjects."""

    def __init__(self, connection: Client, lease_seconds: float) -> None:
        self._connection = connection
        self._stream = connection.jetstream(timeout=ANSWER_SECONDS)
        self._queue = WorkQueue(connection, "", lease_seconds)
        self.lease = timedelta(seconds=lease_seconds)

    async def jobs(self) -> Mapping[str, JobId | None]:
        """Return the job of each message; None for a message whose subject names none.

        Raises:
            QueueUnavailable: the server does not answer.
        """
        found: dict[str, JobId | None] = {}
        last, offset = "", 0
        while True:
            answer = await self._look(offset)
            subjects = answer.state.subjects
            # The list is sorted, and what is removed meanwhile shifts the rest towards its beginning: a part that does
            # not begin within what has been seen may follow a gap.
            if offset and (not subjects or min(subjects) > last):
                offset = max(0, offset - OVERLAP)
                continue
            found |= {subject: job_in(subject) for subject in subjects}
            if offset + len(subjects) >= answer.total:
                return found
            last = max(subjects)
            offset += max(1, len(subjects) - OVERLAP)

    async def complete(self) -> None:
        """Create what is missing of the queue.

        Raises:
            QueueUnavailable: the server does not answer, or has no room for it.
        """
        with _faults():
            await self._queue.check()

    async def offer(self, message: Message) -> None:
        """Put a job into the queue unless it has a message.

        Raises:
            QueueUnavailable: the server does not accept it.
        """
        with _faults():
            await self._queue.offer(message)

    async def remove(self, subject: str) -> None:
        """Remove a message.

        Raises:
            QueueUnavailable: the server does not answer.
        """
        with _faults(), suppress(NotFoundError):
            await self._stream.purge_stream(STREAM, subject=subject)

    async def _look(self, offset: int) -> _Answer:
        """Ask for the subjects from `offset` on: the server does not tell all of many at once."""
        question = msgspec.json.encode({"subjects_filter": ANY_JOB, "offset": offset})
        with _faults():
            told = await self._connection.request(f"$JS.API.STREAM.INFO.{STREAM}", question, timeout=LIST_SECONDS)
            answer = msgspec.json.decode(told.data, type=_Answer)
            if answer.error is not None and answer.error.code != _NO_STREAM:  # without it, there are no messages
                raise nats.errors.Error(answer.error.description)
        return answer


@asynccontextmanager
async def open_contents(url: str, lease_seconds: float) -> AsyncIterator[QueueContents]:
    """Open the queue on the server at `url`.

    Raises:
        QueueUnavailable: the server is away, or refuses the credentials.
    """
    async with connected(url) as connection:
        yield QueueContents(connection, lease_seconds)


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (nats.errors.Error, OSError, QueueUnavailable) as error:
        cause = (error.__cause__ if isinstance(error, QueueUnavailable) else None) or error
        message = f"The NATS server failed: {str(cause) or type(cause).__name__}. Check the server and its limits."
        raise QueueUnavailable(message, RETRY_AFTER_SECONDS) from cause
