"""The queue between gateways and workers: a stream of NATS JetStream with one consumer for each lane.

PostgreSQL is the only truth of what is owed; the queue brings it to the workers. A message that is lost is handed over
again, and one that arrives twice is refused by the claim. Each job has a subject of its own, of which the stream keeps
one message, so that handing a job over again changes nothing while its message is there.
"""

import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final
from uuid import UUID

import anyio
import msgspec
import nats.errors
import structlog
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled
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
from service.telemetry import events

_log = structlog.get_logger()

STREAM: Final = "GEOMILL"
_JOBS: Final = "geomill.convert"
ANY_JOB: Final = f"{_JOBS}.>"
"""The subjects of all jobs."""
_LANES: Final = [f"{size}.{number}" for size in SIZES for number in range(LANES)]
STIRRED: Final = "geomill.stirred"
"""The subject on which lanes are announced that have a job to take."""
_ENDED: Final = "geomill.ended"
_LIST_LANES: Final = f"$JS.API.CONSUMER.LIST.{STREAM}"

_ID_BYTES: Final = 16
MOST_AT_ONCE: Final = 64
"""The most jobs that a worker asks for at once."""
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 1.0
"""How often a worker checks all lanes, however much it finds in some: redelivered messages are not announced."""
RETRY_AFTER_SECONDS: Final = 5
SIGNS_PER_LEASE: Final = 6
"""How often this process asks the server during a lease whether it is still there; after two missing answers, it
connects again. A server that has vanished without a word leaves the connection open."""
ENVELOPE_BYTES: Final = 512
"""More than the seal of a handover, its name and the header take in a message."""
MOST_UNACKNOWLEDGED: Final = 100_000
REFUSED: Final = "Check the user and the password, or the token, in GEOMILL_NATS_URL, and what NATS allows them."
"""What to do if the server refuses the credentials."""
_SAME_NAME_SECONDS: Final = 5.0
_NAME_TAKEN: Final = 10058
_NOT_STORED: Final = 10077
_SUBJECT_TAKEN: Final = "per subject"
"""What the server says if a message was not stored because its subject has one, and not for want of space."""


class _Consumer(msgspec.Struct, frozen=True):
    """What waits in one lane, and what workers have of it, which may be delivered again."""

    name: str
    num_pending: int = 0
    num_ack_pending: int = 0


class _Consumers(msgspec.Struct, frozen=True):
    """What the server says of the lanes."""

    consumers: list[_Consumer] = []


class Delivery:
    """A message that only this worker has, until it acknowledges or returns it or stops sending signs of life."""

    def __init__(self, message: Msg, announce: Callable[[str], Awaitable[None]]) -> None:
        """`announce` tells workers that there is a job in a lane."""
        self.is_first = message.metadata.num_delivered == 1
        self.is_followed = message.metadata.num_pending > 0 or not self.is_first
        """Whether its lane may have more: the server does not count those that it delivers again."""
        self.lane = message.subject.removeprefix(f"{_JOBS}.").rpartition(".")[0]
        self.is_large = is_large(self.lane)
        self.data = message.data
        self._message = message
        self._announce = announce

    async def acknowledge(self) -> None:
        """Remove it from the queue. If this is lost, the message is delivered again."""
        with suppress(nats.errors.Error):
            await self._message.ack()

    async def give_back(self, seconds: float = 0.0) -> None:
        """Return it to the queue, to be delivered again after `seconds`."""
        with suppress(nats.errors.Error):
            await self._message.nak(delay=seconds or None)
            if not seconds:
                await self._announce(self.lane)

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
        self._takers = 0
        self._found: deque[Delivery] = deque()
        self._ended: dict[ServerId, list[bytes]] = {}
        self._is_left = False
        self._was_connected = anyio.Event()
        self._is_refused = False
        self.questions = Questions(connection)

    @property
    def is_connected(self) -> bool:
        """Whether the server is connected."""
        return self._connection.is_connected

    @property
    def is_refused(self) -> bool:
        """Whether the server refuses the credentials of this process."""
        return self._is_refused and not self._connection.is_connected

    async def connect(self) -> None:
        """Connect to the server, however long that takes, and reconnect whenever the connection breaks."""

        async def note(error: Exception) -> None:
            """Tell operators once what waiting does not mend; readiness and metrics report an unreachable server."""
            if is_refusal(error) and not self._is_refused:
                self._is_refused = True
                _log.error(events.QUEUE_REFUSED, reason=str(error), advice=REFUSED)

        async def note_connection() -> None:
            self._is_refused = False

        await self._connection.connect(
            self._url,
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

    def has_room_for(self, handover: HandOver, content_bytes: int) -> bool:
        """Whether the server takes a message with an input of this size, which `handover` does not contain yet."""
        return len(write_handover(handover)) + content_bytes + ENVELOPE_BYTES <= self._connection.max_payload

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
            await self._announce(handover.lane)
            return not receipt.duplicate

    async def listen(self) -> None:
        """Subscribe to announcements of jobs in lanes."""
        await self._connection.subscribe(STIRRED, cb=self._stir)

    def leave(self) -> None:
        """Take no further jobs."""
        self._is_left = True
        self._was_connected.set()
        self._stirred.set()

    def wake(self) -> None:
        """Make those who wait for a job look again: something has changed that decides whether they may."""
        self._stirred.set()

    async def take(
        self, may_be_large: Callable[[], bool], room: Callable[[], int] = lambda: MOST_AT_ONCE
    ) -> Delivery | None:
        """Wait for a job from the next lane that has one; jobs with large inputs only if `may_be_large`.

        Takes none while `room` is 0, and no more of them at once than it says; callers that wait get those of one
        request. None once the queue is left.
        """
        self._takers += 1
        try:
            async with self._looking:
                while not self._is_left:
                    if self._found:
                        return self._found.popleft()
                    self._stirred = anyio.Event()
                    with suppress(QueueUnavailable):
                        if (most := min(self._takers, room())) and await self._look_round(most, may_be_large):
                            continue
                    with anyio.move_on_after(LOOK_AGAIN_SECONDS):
                        await self._stirred.wait()
        finally:
            self._takers -= 1
            if not self._takers or self._is_left:
                await self._give_all_back()
        return None

    async def _look_round(self, most: int, may_be_large: Callable[[], bool]) -> bool:
        """Look for jobs in one lane after the other; return whether there were any."""
        if time.monotonic() - self._looked_at >= LOOK_AGAIN_SECONDS:
            self._looked_at = time.monotonic()
            if await self.check():  # one question instead of one for each lane
                for lane in await self._occupied():
                    self._lanes.stir(lane)
        while lanes := self._next_lanes(most, may_be_large=may_be_large()):
            each, rest = divmod(most, len(lanes))
            shares = {lane: each + (place < rest) for place, lane in enumerate(lanes)}
            await self._look_into({lane: 1 if is_large(lane) else share for lane, share in shares.items()})
            if self._found:
                return True
        return False

    async def _occupied(self) -> list[str]:
        """Return the lanes that have jobs, including those that workers have."""
        with _faults():
            answer = await self._connection.request(_LIST_LANES, timeout=ANSWER_SECONDS)
        known = {_name(lane): lane for lane in _LANES}
        consumers = msgspec.json.decode(answer.data, type=_Consumers).consumers
        return [known[one.name] for one in consumers if one.name in known and (one.num_pending or one.num_ack_pending)]

    def _next_lanes(self, most: int, *, may_be_large: bool) -> list[str]:
        """The next lanes that may contain jobs; of those with large inputs, one at a time."""
        lanes: list[str] = []
        while len(lanes) < most and (lane := self._lanes.next(may_be_large=may_be_large)):
            lanes.append(lane)
            may_be_large = may_be_large and not is_large(lane)
        return lanes

    async def _give_all_back(self) -> None:
        """Return what nobody waits for any more."""
        with anyio.CancelScope(shield=True):
            while self._found:
                await self._found.popleft().give_back()

    async def tell_ended(self, gateway: ServerId, job_id: JobId) -> None:
        """Tell the gateway of a job that it has ended, and of others that end at the same time; it need not arrive."""
        self._ended.setdefault(gateway, []).append(job_id.bytes)
        if len(self._ended[gateway]) == 1:
            with anyio.CancelScope(shield=True):
                await checkpoint()
                with suppress(nats.errors.Error):
                    await self._connection.publish(f"{_ENDED}.{gateway}", b"".join(self._ended.pop(gateway)))

    async def hear_ended(self, gateway: ServerId, hear: Callable[[JobId], None]) -> None:
        """Call `hear` with each job of this gateway that is said to have ended. Anyone who can publish could say so."""

        async def pass_on(message: Msg) -> None:
            for start in range(0, len(message.data), _ID_BYTES):
                with suppress(ValueError):  # no id of a job
                    hear(JobId(UUID(bytes=message.data[start : start + _ID_BYTES])))

        await self._connection.subscribe(f"{_ENDED}.{gateway}", cb=pass_on)

    async def _look_into(self, lanes: Mapping[str, int]) -> None:
        """Ask for as many jobs of each lane as are given, and note those that there are."""
        # What is asked for arrives: it would be nobody's for a lease.
        with anyio.CancelScope(shield=True), _faults():
            self._require_connection()
            await self._ask(dict(lanes))
        await checkpoint_if_cancelled()

    async def _ask(self, left: dict[str, int]) -> None:
        """Ask for jobs of lanes, and count down how many are left that each lane does not have."""
        if self._answers is None:
            self._answers = await self._connection.subscribe(self._connection.new_inbox())
        empty = 0
        try:
            for lane, most in left.items():
                question = b'{"batch":%d,"no_wait":true}' % most
                subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{_name(lane)}"
                await self._connection.publish(subject, question, reply=self._answers.subject)
            while empty < sum(missing > 0 for missing in left.values()):
                answer = await self._answers.next_msg(ANSWER_SECONDS)
                if answer.headers and api.Header.STATUS in answer.headers:
                    empty += 1
                    continue
                with suppress(nats.errors.NotJSMessageError):  # a stray message: anyone may send to the subject
                    if (delivery := Delivery(answer, self._announce)).lane in left:
                        self._found.append(delivery)
                        left[delivery.lane] -= 1
                        if not left[delivery.lane] and delivery.is_followed:
                            self._lanes.stir(delivery.lane)
        except nats.errors.Error:  # a late answer must not be taken for that to another question
            stale, self._answers = self._answers, None
            with suppress(nats.errors.Error):
                await stale.unsubscribe()
            if not self._found:
                raise

    async def _announce(self, lane: str) -> None:
        """Tell workers that there is a job in a lane."""
        await self._connection.publish(STIRRED, lane.encode())

    async def _stir(self, message: Msg) -> None:
        self._lanes.stir(message.data.decode())
        self._stirred.set()

    def _require_connection(self) -> None:
        """Refuse at once instead of waiting for a connection."""
        if self.is_refused:
            raise nats.errors.AuthorizationError
        if not self._connection.is_connected:
            raise nats.errors.ConnectionReconnectingError


def is_refusal(error: Exception) -> bool:
    """Whether the server refuses credentials: the client has no class of its own for all its sentences."""
    return isinstance(error, nats.errors.AuthorizationError) or "authorization" in str(error).lower()


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
            with _faults():
                with anyio.move_on_after(CONNECT_SECONDS):  # the client would try it without end
                    await queue.connect()
                queue.require_connection()
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
    subjects=[ANY_JOB],
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
