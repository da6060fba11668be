"""The state of the queue between gateways and workers, for those who look at an installation: nothing is created."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import msgspec
import nats.errors
from nats.aio.client import Client
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from service.errors import QueueUnusable
from service.jobs.handover import LANES, SIZES
from service.jobs.queue_address import read_address
from service.jobs.queue_client import QueueClient
from service.jobs.queue_faults import ANSWER_SECONDS, CONNECT_SECONDS, RETRY_AFTER_SECONDS, refusal_in
from service.jobs.stream import STREAM

_OFF = {None, 10039, 10076}
MESSAGE_BYTES = 8192
"""More than a message usually contains besides an input."""


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """What the server says; without a stream, only its version and its limit."""

    version: str
    message_bytes: int
    """The size of the largest message that it takes, for this stream if there is one."""
    messages: int = 0
    replicas: int = 0
    lanes: int | None = None
    all_lanes: int = LANES * len(SIZES)
    lease_seconds: float = 0.0
    """How long the queue waits for a sign of life from a worker."""
    is_full: bool = False
    """Whether the stream has no room for a further job within its own limits, if it has any."""
    loses_jobs: bool = False
    """Whether it drops jobs that no worker has taken."""


def _told_of_jetstream(error: Exception) -> str:
    """What to tell of a server that does not answer for JetStream; where that is off, there may be no code."""
    if isinstance(error, APIError) and error.err_code in _OFF:
        return "The NATS server has no JetStream for this account. Start it with -js, or allow it for the account."
    reason = (error.description if isinstance(error, APIError) else "") or "no answer"
    return f"JetStream of the NATS server cannot be used: {reason}. See its log, and whether a cluster has a leader."


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    """Connect to the server at `url` once.

    Raises:
        QueueUnusable: the message says whether the server is away or refuses the credentials.
    """
    reasons = ["no answer"]

    async def note(error: Exception) -> None:
        reasons.append(str(error) or type(error).__name__)

    connection = QueueClient()
    try:
        try:
            with anyio.fail_after(CONNECT_SECONDS):  # the client itself tries again and again
                await connection.connect(**read_address(url), allow_reconnect=False, error_cb=note)
        except (nats.errors.Error, OSError, TimeoutError) as error:
            refusal = refusal_in(error)
            advice = refusal.advice if refusal else "Check GEOMILL_NATS_URL and the network."
            message = f"The NATS server of GEOMILL_NATS_URL cannot be used: {str(error) or reasons[-1]}. {advice}"
            raise QueueUnusable(message, RETRY_AFTER_SECONDS) from error
        yield connection
    finally:
        await connection.close()


async def look_at_queue(url: str) -> QueueState:
    """Return the state of the queue on the server at `url`.

    Raises:
        QueueUnusable: the message says whether the server is away, refuses the credentials, or has no JetStream.
    """
    async with connected(url) as connection:
        stream = connection.jetstream(timeout=ANSWER_SECONDS)
        server, message_bytes = connection.connected_server_version, connection.max_payload
        version = f"{server.major}.{server.minor}.{server.patch}"
        try:
            found = await stream.stream_info(STREAM)
            consumers = await stream.consumers_info(STREAM)
        except NotFoundError:
            return QueueState(version=version, message_bytes=message_bytes)
        except (nats.errors.Error, TimeoutError) as error:
            raise QueueUnusable(_told_of_jetstream(error), RETRY_AFTER_SECONDS) from error
        if (most := found.config.max_msg_size or -1) > 0:
            message_bytes = min(message_bytes, most)
        waits = {float(consumer.config.ack_wait or 0) for consumer in consumers}
        return QueueState(
            version=version,
            message_bytes=message_bytes,
            messages=found.state.messages,
            replicas=found.config.num_replicas or 1,
            lanes=len(consumers),
            lease_seconds=min(waits, default=0.0),
            is_full=_is_full(found),
            loses_jobs=bool(found.config.max_age) or found.config.discard != api.DiscardPolicy.NEW,
        )


def _is_full(stream: api.StreamInfo) -> bool:
    config, state = stream.config, stream.state
    limits = ((config.max_msgs, state.messages + 1), (config.max_bytes, state.bytes + MESSAGE_BYTES))
    return bool(config.sealed) or any(0 < (most or 0) < needed for most, needed in limits)
