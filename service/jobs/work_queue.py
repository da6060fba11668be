"""The queue between gateways and workers: a stream of NATS JetStream with one consumer for each lane.

PostgreSQL is the only truth of what is owed; the queue brings it to the workers. A message that is lost is handed over
again, and one that arrives twice is refused by the claim. Each job has a subject of its own, of which the stream keeps
one message, so that handing a job over again changes nothing while its message is there.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
import msgspec
import nats.errors
import structlog
from anyio.lowlevel import checkpoint
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, NotFoundError, ServerError

from service.ids import ServerId
from service.jobs.deliveries import Deliveries
from service.jobs.handover import Message
from service.jobs.notices import Notice, read_notices, write_notices
from service.jobs.questions import Questions
from service.jobs.queue_address import read_address
from service.jobs.queue_client import QueueClient
from service.jobs.queue_faults import ANSWER_SECONDS, CONNECT_SECONDS, refusal_in, translated
from service.jobs.stream import ALL_LANES, ANNOUNCED, CONFIG, STREAM, consumer, subject_of
from service.telemetry import events

_log = structlog.get_logger()

SIGNS_PER_LEASE: Final = 6
"""How often this process asks the server during a lease whether it is still there; after two missing answers, it
connects again. A server that has vanished silently leaves the connection open."""
ENVELOPE_BYTES: Final = 512
"""More than the name of a job and the header take in a message."""
_ENDED: Final = "geomill.ended"
_NAME_TAKEN: Final = 10058
_OTHER_STORAGE: Final = 10012
_NOT_STORED: Final = 10077
_TOO_LARGE: Final = 10054
_SUBJECT_TAKEN: Final = "per subject"
"""What the server says if a message was not stored because its subject has one, and not for want of space."""


class MessageTooLargeError(Exception):
    """Server or stream take no message as large as a job with its input, though they may have taken it before."""


class WorkQueue:
    """The queue as one process sees it; `open_work_queue` opens it."""

    def __init__(self, connection: Client, url: str, lease_seconds: float) -> None:
        self._url = url
        self._connection = connection
        self._stream: JetStreamContext = connection.jetstream(timeout=ANSWER_SECONDS)
        self._lease_seconds = lease_seconds
        self._ended: dict[ServerId, list[Notice]] = {}
        self._was_connected = anyio.Event()
        self._refused: Exception | None = None
        self.questions = Questions(connection)
        self.deliveries = Deliveries(connection, self._require_connection, self.check)

    @property
    def is_connected(self) -> bool:
        """Whether the server is connected."""
        return self._connection.is_connected

    @property
    def refusal(self) -> str:
        """What the server refuses, such as the credentials of this process; empty if it refuses nothing."""
        refusal = refusal_in(self._refused) if self._refused and not self._connection.is_connected else None
        return refusal.state if refusal else ""

    async def connect(self) -> None:
        """Connect to the server, however long that takes, and reconnect whenever the connection breaks."""

        async def note(error: Exception) -> None:
            """Tell operators once what waiting does not mend; readiness and metrics report an unreachable server."""
            if (refusal := refusal_in(error)) and not self._refused:
                self._refused = error
                _log.error(events.QUEUE_REFUSED, reason=str(error), advice=refusal.advice)

        async def note_connection() -> None:
            self._refused = None

        await self._connection.connect(
            **read_address(self._url),
            connect_timeout=int(CONNECT_SECONDS),
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            ping_interval=self._lease_seconds / SIGNS_PER_LEASE,  # type: ignore[arg-type]  # any number of seconds
            max_outstanding_pings=2,
            error_cb=note,
            reconnected_cb=note_connection,
        )
        await note_connection()
        self._was_connected.set()

    async def connected(self) -> bool:
        """Wait for the first connection; return False if the queue was left instead."""
        await self._was_connected.wait()
        return not self.deliveries.is_left

    def require_connection(self) -> None:
        """Raise `QueueUnavailable` at once if the server is not connected."""
        with translated():
            self._require_connection()

    async def check(self) -> int:
        """Return how many jobs are in the queue, including those that workers have; create what is missing of it.

        Raises:
            QueueUnavailable: the server cannot be reached.
        """
        with translated():
            self._require_connection()
            try:
                info = await self._stream.stream_info(STREAM)
            except NotFoundError:
                await self.create()
                return 0
            state = info.state
            if state.consumer_count < len(ALL_LANES) or info.config.republish != ANNOUNCED:
                await self.create()  # whoever created the queue did not finish, or is of an earlier version
            return state.messages

    async def create(self) -> None:
        """Create the queue, or those of its lanes that are missing.

        Raises:
            QueueUnavailable: the server cannot be reached, or has no room for it.
        """
        with translated():
            self._require_connection()
            try:
                await self._stream.add_stream(CONFIG)
            except BadRequestError as error:
                if error.err_code != _NAME_TAKEN:
                    raise
                await self._have_jobs_announced()  # an operator has given it other replicas or limits
            for lane in ALL_LANES:
                await self._add(consumer(lane, self._lease_seconds))

    async def _add(self, lane: api.ConsumerConfig) -> None:
        """Create the consumer of a lane, or change it to this configuration; it may be replaced for that."""
        try:
            await self._stream.add_consumer(STREAM, lane)
        except ServerError as error:
            if error.err_code != _OTHER_STORAGE or lane.durable_name is None:
                raise
            with suppress(NotFoundError):  # another process is doing the same
                await self._stream.delete_consumer(STREAM, lane.durable_name)
            await self._stream.add_consumer(STREAM, lane)

    async def _have_jobs_announced(self) -> None:
        """Make a stream that already exists announce its jobs; all else that it was given stays."""
        config = (await self._ask(f"$JS.API.STREAM.INFO.{STREAM}"))["config"]
        if config.get("republish") != (announced := ANNOUNCED.as_dict()):
            changed = msgspec.json.encode({**config, "republish": announced})
            await self._ask(f"$JS.API.STREAM.UPDATE.{STREAM}", changed)

    async def _ask(self, subject: str, data: bytes = b"", headers: dict[str, str] | None = None) -> dict[str, Any]:
        """Return the answer of the stream; raises what it says instead, or that nobody answers."""
        message = await self._connection.request(subject, data, timeout=ANSWER_SECONDS, headers=headers)
        answer: dict[str, Any] = msgspec.json.decode(message.data)
        if fault := answer.get("error"):
            raise APIError.from_error(fault)
        return answer

    def takes(self, size_bytes: int) -> bool:
        """Whether the server takes a message of this size; one with an input of this size may yet be too large."""
        return size_bytes + ENVELOPE_BYTES <= self._connection.max_payload

    async def offer(self, message: Message) -> bool:
        """Put a job into the queue unless it is in it already; return whether it was added.

        Raises:
            MessageTooLargeError: the job is to be handed over without its input.
            QueueUnavailable: the queue is full, or cannot be reached: the job may or may not be there now.
        """
        with translated():
            self._require_connection()
            if message.has_content and not self.takes(len(message.data)):
                raise MessageTooLargeError
            try:
                receipt = await self._ask(
                    subject_of(message.lane, message.job_id), message.data, {api.Header.MSG_ID: str(message.job_id)}
                )
            except nats.errors.NoRespondersError:
                await self.create()
                raise
            except APIError as error:
                if error.err_code == _TOO_LARGE and message.has_content:
                    raise MessageTooLargeError from error
                if error.err_code != _NOT_STORED or _SUBJECT_TAKEN not in (error.description or ""):
                    raise
                return False
            return not receipt.get("duplicate", False)

    def leave(self) -> None:
        """Take no further jobs."""
        self.deliveries.leave()
        self._was_connected.set()

    async def publish_end(self, gateway: ServerId, notice: Notice) -> None:
        """Tell the gateway of a job that it has ended, and of others that end at the same time; it need not arrive."""
        self._ended.setdefault(gateway, []).append(notice)
        if len(self._ended[gateway]) == 1:
            with anyio.CancelScope(shield=True):
                await checkpoint()
                message = write_notices(self._ended.pop(gateway), self._connection.max_payload)
                with suppress(nats.errors.Error):
                    await self._connection.publish(f"{_ENDED}.{gateway}", message)

    async def subscribe_to_ends(self, gateway: ServerId, on_notice: Callable[[Notice], None]) -> None:
        """Call `on_notice` with each job of this gateway that is said to have ended, by anyone who can publish."""

        async def pass_on(message: Msg) -> None:
            for notice in read_notices(message.data):
                on_notice(notice)

        await self._connection.subscribe(f"{_ENDED}.{gateway}", cb=pass_on)

    def _require_connection(self) -> None:
        """Refuse at once instead of waiting for a connection."""
        if self.refusal:
            raise nats.errors.Error(str(self._refused))
        if not self._connection.is_connected:
            raise nats.errors.ConnectionReconnectingError


@asynccontextmanager
async def open_work_queue(url: str, lease_seconds: float, *, is_needed: bool = True) -> AsyncIterator[WorkQueue]:
    """Connect to the server at `url`, and reconnect whenever the connection breaks.

    A message without a sign of life for `lease_seconds` is delivered again. If the queue is not needed at
    once, the caller calls `connect`.

    Raises:
        QueueUnavailable: the server cannot be reached now.
    """
    connection = QueueClient()
    queue = WorkQueue(connection, url, lease_seconds)
    try:
        if is_needed:
            with translated():
                with anyio.move_on_after(CONNECT_SECONDS):  # the client would try it without end
                    await queue.connect()
                queue.require_connection()
            await queue.create()
        yield queue
    finally:
        # The client writes what is left; Python 3.13 calls None for that if it knows that the connection broke.
        with anyio.CancelScope(shield=True), suppress(nats.errors.Error, OSError, TypeError):
            await connection.close()
