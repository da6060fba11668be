"""The queue between gateways and workers: a stream of NATS JetStream with one consumer for each lane.

PostgreSQL is the only truth of what is owed; the queue brings it to the workers. A message that is lost is handed over
again, and one that arrives twice is refused by the claim. Each job has a subject of its own, of which the stream keeps
one message, so that handing a job over again changes nothing while its message is there.
"""

import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final
from uuid import UUID

import anyio
import nats.errors
from anyio.lowlevel import checkpoint_if_cancelled
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, BadRequestError, NoStreamResponseError, NotFoundError

from service.errors import QueueUnavailable
from service.ids import JobId, ServerId
from service.jobs.handover import LANES, SIZES, HandOver, write_handover
from service.jobs.lanes import Lanes, is_large
from service.jobs.questions import Questions

STREAM: Final = "GEOMILL"
_JOBS: Final = "geomill.convert"
_LANES: Final = [f"{size}.{number}" for size in SIZES for number in range(LANES)]
_STIRRED: Final = "geomill.stirred"
_ENDED: Final = "geomill.ended"
_ASK: Final = b'{"batch":1,"no_wait":true}'

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 1.0
"""How often a worker checks all lanes, however much it finds in some: redelivered messages are not announced."""
RETRY_AFTER_SECONDS: Final = 5
SIGNS_PER_LEASE: Final = 6
"""How often this process asks the server during a lease whether it is still there; after two missing answers, it
connects again. A server that has vanished without a word leaves the connection open."""
MOST_UNACKNOWLEDGED: Final = 100_000
_SAME_NAME_SECONDS: Final = 5.0
_NAME_TAKEN: Final = 10058
_NOT_STORED: Final = 10077
_SUBJECT_TAKEN: Final = "per subject"
"""What the server says if a message was not stored because its subject has one, and not for want of space."""


class Delivery:
    """A message that only this worker has, until it acknowledges or returns it or stops sending signs of life."""

    def __init__(self, message: Msg, lane: str) -> None:
        self._message = message
        self.data = message.data
        self.is_large = is_large(lane)
        self.is_first = message.metadata.num_delivered == 1

    async def acknowledge(self) -> None:
        """Remove it from the queue. If this is lost, the message is delivered again."""
        with suppress(nats.errors.Error):
            await self._message.ack()

    async def give_back(self, seconds: float = 0.0) -> None:
        """Return it to the queue, to be delivered again after `seconds`."""
        with suppress(nats.errors.Error):
            await self._message.nak(delay=seconds or None)

    async def keep(self) -> None:
        """Tell the queue that this worker still works on the message."""
        with suppress(nats.errors.Error):
            await self._message.in_progress()


class WorkQueue:
    """The queue as one process sees it; `open_work_queue` opens it."""

    def __init__(self, connection: Client, url: str, lease_seconds: float) -> None:
        self._url = url
        self._connection = connection
        self._stream: JetStreamContext = connection.jetstream(timeout=ANSWER_SECONDS)
        self._lease_seconds = lease_seconds
        self._lanes = Lanes()
        self._looked_at = -math.inf
        self._looking = anyio.Lock()
        self._stirred = anyio.Event()
        self._answers: Subscription | None = None
        self._is_left = False
        self._was_connected = anyio.Event()
        self.questions = Questions(connection)

    @property
    def is_connected(self) -> bool:
        """Whether the server is connected."""
        return self._connection.is_connected

    async def connect(self) -> None:
        """Connect to the server, however long that takes, and reconnect whenever the connection breaks."""

        async def stay_quiet(_error: Exception) -> None:
            """Readiness and metrics report an unreachable server."""

        await self._connection.connect(
            self._url,
            connect_timeout=int(CONNECT_SECONDS),
            max_reconnect_attempts=-1,
            reconnect_time_wait=1,
            ping_interval=self._lease_seconds / SIGNS_PER_LEASE,  # type: ignore[arg-type]  # any number of seconds
            max_outstanding_pings=2,
            error_cb=stay_quiet,
        )
        self._was_connected.set()

    async def connected(self) -> bool:
        """Wait for the first connection; return False if the queue was left instead."""
        await self._was_connected.wait()
        return not self._is_left

    def require_connection(self) -> None:
        """Raise `QueueUnavailable` at once if the server is not connected."""
        with _faults():
            self._require_connection()

    async def check(self) -> int:
        """Return how many jobs are in the queue, including those that workers have; create what is missing of it.

        Raises:
            QueueUnavailable: the server cannot be reached.
        """
        with _faults():
            self._require_connection()
            try:
                state = (await self._stream.stream_info(STREAM)).state
            except NotFoundError:
                await self.create()
                return 0
            if state.consumer_count < len(_LANES):  # whoever created the queue did not finish
                await self.create()
            return state.messages

    async def create(self) -> None:
        """Create the queue, or those of its lanes that are missing.

        Raises:
            QueueUnavailable: the server cannot be reached, or has no room for it.
        """
        with _faults():
            self._require_connection()
            try:
                await self._stream.add_stream(_STREAM)
            except BadRequestError as error:
                if error.err_code != _NAME_TAKEN:  # otherwise the operator has given it other replicas or limits
                    raise
            for lane in _LANES:
                await self._stream.add_consumer(STREAM, _consumer(lane, self._lease_seconds))

    async def offer(self, handover: HandOver) -> bool:
        """Put a job into the queue unless it is in it already; return whether it was added.

        Raises:
            QueueUnavailable: the queue is full, or cannot be reached: the job may or may not be there now.
        """
        with _faults():
            self._require_connection()
            try:
                receipt = await self._stream.publish(
                    f"{_JOBS}.{handover.lane}.{handover.job.id}",
                    write_handover(handover),
                    headers={api.Header.MSG_ID: handover.name},
                )
            except NoStreamResponseError:
                await self.create()
                raise
            except APIError as error:
                if error.err_code != _NOT_STORED or _SUBJECT_TAKEN not in (error.description or ""):
                    raise
                return False
            await self._connection.publish(_STIRRED, handover.lane.encode())
            return not receipt.duplicate

    async def listen(self) -> None:
        """Subscribe to announcements of jobs in lanes."""
        await self._connection.subscribe(_STIRRED, cb=self._stir)

    def leave(self) -> None:
        """Take no further jobs."""
        self._is_left = True
        self._was_connected.set()
        self._stirred.set()

    def wake(self) -> None:
        """Make those who wait for a job look again: something has changed that decides whether they may."""
        self._stirred.set()

    async def take(
        self, may_be_large: Callable[[], bool], may_take: Callable[[], bool] = lambda: True
    ) -> Delivery | None:
        """Wait for a job from the next lane that has one; jobs with large inputs only if `may_be_large`.

        Takes none for as long as `may_take` says no. None once the queue is left.
        """
        async with self._looking:
            while not self._is_left:
                self._stirred = anyio.Event()
                with suppress(QueueUnavailable):
                    if may_take() and (found := await self._look_round(may_be_large)):
                        return found
                with anyio.move_on_after(LOOK_AGAIN_SECONDS):
                    await self._stirred.wait()
        return None

    async def _look_round(self, may_be_large: Callable[[], bool]) -> Delivery | None:
        if time.monotonic() - self._looked_at >= LOOK_AGAIN_SECONDS:
            self._looked_at = time.monotonic()
            if await self.check():  # one question instead of one for each lane
                self._lanes.stir_all()
        while lane := self._lanes.next(may_be_large=may_be_large()):
            if found := await self._look_into(lane):
                return found
        return None

    async def tell_ended(self, gateway: ServerId, job_id: JobId) -> None:
        """Tell the gateway of a job that it has ended; it need not arrive."""
        with suppress(nats.errors.Error):
            await self._connection.publish(f"{_ENDED}.{gateway}", job_id.bytes)

    async def hear_ended(self, gateway: ServerId, hear: Callable[[JobId], None]) -> None:
        """Call `hear` with each job of this gateway that is said to have ended. Anyone who can publish could say so."""

        async def pass_on(message: Msg) -> None:
            with suppress(ValueError):  # no id of a job
                hear(JobId(UUID(bytes=message.data)))

        await self._connection.subscribe(f"{_ENDED}.{gateway}", cb=pass_on)

    async def _look_into(self, lane: str) -> Delivery | None:
        with anyio.CancelScope(shield=True), _faults():  # what is asked for arrives: it would be nobody's for a lease
            self._require_connection()
            delivery = await self._ask(lane)
        if delivery is None:
            return None
        self._lanes.stir(lane)
        try:
            await checkpoint_if_cancelled()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await delivery.give_back()
            raise
        return delivery

    async def _ask(self, lane: str) -> Delivery | None:
        """Ask for the next message of a lane; None if there is none."""
        if self._answers is None:
            self._answers = await self._connection.subscribe(self._connection.new_inbox())
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{_name(lane)}"
        await self._connection.publish(subject, _ASK, reply=self._answers.subject)
        try:
            while True:
                answer = await self._answers.next_msg(ANSWER_SECONDS)
                if answer.headers and api.Header.STATUS in answer.headers:
                    return None
                with suppress(nats.errors.NotJSMessageError):  # a stray message: anyone may send to the subject
                    return Delivery(answer, lane)
        except nats.errors.Error:  # a late answer must not be taken for that to another question
            stale, self._answers = self._answers, None
            with suppress(nats.errors.Error):
                await stale.unsubscribe()
            raise

    async def _stir(self, message: Msg) -> None:
        self._lanes.stir(message.data.decode())
        self._stirred.set()

    def _require_connection(self) -> None:
        """Refuse at once instead of waiting for a connection."""
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
    connection = Client()
    queue = WorkQueue(connection, url, lease_seconds)
    try:
        if is_needed:
            with _faults(), anyio.fail_after(CONNECT_SECONDS):  # the client would try it without end
                await queue.connect()
            await queue.create()
        yield queue
    finally:
        with anyio.CancelScope(shield=True), suppress(nats.errors.Error):
            await connection.close()


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (nats.errors.Error, OSError, TimeoutError) as error:
        message = "The service cannot reach its converters at the moment. Send the request again later."
        raise QueueUnavailable(message, RETRY_AFTER_SECONDS) from error


_STREAM: Final = api.StreamConfig(
    name=STREAM,
    subjects=[f"{_JOBS}.>"],
    retention=api.RetentionPolicy.WORK_QUEUE,
    storage=api.StorageType.FILE,
    discard=api.DiscardPolicy.NEW,
    discard_new_per_subject=True,
    max_msgs_per_subject=1,
    duplicate_window=_SAME_NAME_SECONDS,
)


def _consumer(lane: str, lease_seconds: float) -> api.ConsumerConfig:
    return api.ConsumerConfig(
        durable_name=_name(lane),
        filter_subject=f"{_JOBS}.{lane}.*",
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=lease_seconds,
        max_ack_pending=MOST_UNACKNOWLEDGED,
    )


def _name(lane: str) -> str:
    return lane.replace(".", "-")
