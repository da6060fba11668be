"""What a gateway tells the workers of a job: plain data with a version.

A worker understands messages of its own version and of the previous one, so that gateways and workers can be updated
one after the other. Whoever hands a job over again sends the bytes that its gateway wrote, which may be of any version.

The input is inside if it is small and a client waits for the result, so that its gateway still has it; otherwise it is
in the store, under the key that the job's row has. A worker recognizes the input again: where the files of an archive
lie is a matter of its host.
"""

from datetime import date
from hashlib import sha256
from typing import Final
from zlib import crc32

import msgspec

from service.formats.request import ConversionRequest
from service.ids import AccountId, JobId, ServerId
from service.jobs.records import Job
from service.jobs.seals import Proof, seal_of

VERSION: Final = 3
READS: Final = (2, VERSION)
"""The versions that this process understands. A field that is newer than the oldest of them has a default value."""
LANES: Final = 16
"""Each account has one lane a day, so that the backlog of one account waits in one of them."""
LARGE_BYTES: Final = 8 << 20
"""Inputs above this size have separate lanes, so that they do not delay small ones."""
SIZES: Final = ("small", "large")
_NO_SEAL: Final = msgspec.msgpack.encode(b"")


class HandOver(msgspec.Struct, frozen=True, kw_only=True):
    """A job for any worker; `content` is its input, None if that is in the store."""

    version: int = VERSION
    job: Job
    account_id: AccountId
    request: ConversionRequest
    target: str
    """The token of the target format."""
    retention_hours: int
    gateway: ServerId
    """The process that waits for the end of the job."""
    content: bytes | None = None
    traceparent: str = ""
    """The span of the gateway within which workers trace the job."""
    input_sha256: bytes = b""
    """Of an input in the store; empty before version 3."""
    seal: bytes = b""
    """Proves that the rest comes from the gateway that admitted the job; see `sealed`. It is the last field."""

    @property
    def lane(self) -> str:
        """The lane in which the job waits."""
        return lane_of(self.account_id, self.job.created_at.date(), self.job.input_size_bytes)


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it lies in the queue; `data` is what its gateway wrote, in whatever version."""

    job_id: JobId
    lane: str
    data: bytes
    has_content: bool = False
    """Whether the input is inside."""


class Stamp(msgspec.Struct, frozen=True):
    """What can be read of a message of any version."""

    version: int
    seal: bytes = b""


def stamp_of(message: bytes) -> Stamp:
    """Return the stamp of a message from a gateway.

    Raises:
        msgspec.DecodeError: it is damaged, or not from a gateway.
    """
    return msgspec.msgpack.decode(message, type=Stamp)


def read_handover(message: bytes) -> HandOver | None:
    """Read a message from a gateway; None if this process does not understand its version.

    Raises:
        msgspec.DecodeError: it is damaged, or not from a gateway.
    """
    if stamp_of(message).version not in READS:
        return None
    return msgspec.msgpack.decode(message, type=HandOver)


def write_handover(handover: HandOver) -> bytes:
    """Return the message, which `read_handover` reads."""
    return msgspec.msgpack.encode(handover)


def message_of(handover: HandOver) -> Message:
    """Return the handover as it lies in the queue."""
    return Message(
        job_id=handover.job.id,
        lane=handover.lane,
        data=write_handover(handover),
        has_content=handover.content is not None,
    )


def sealed(handover: HandOver, secret: str) -> HandOver:
    """Return the handover with its seal; `secret` is the key that admission recorded for the output."""
    unsealed = msgspec.structs.replace(handover, seal=b"")
    return msgspec.structs.replace(handover, seal=seal_of(proof_of(write_handover(unsealed), b"").digest, secret))


def proof_of(message: bytes, seal: bytes) -> Proof:
    """Return what shows that whoever sealed a message had the secret, and that nothing was changed since.

    What was sealed is the message as it was written, but with an empty seal at its end. Writing it again could add
    fields that its version did not have.
    """
    digest = sha256(memoryview(message)[: len(message) - len(msgspec.msgpack.encode(seal))])
    digest.update(_NO_SEAL)
    return Proof(digest.digest(), seal)


def lane_of(account_id: AccountId, day: date, size_bytes: int) -> str:
    """Return the lane of an account's inputs of this size, as `small.7`; another one every day."""
    number = crc32(account_id.bytes + day.isoformat().encode()) % LANES
    return f"{SIZES[size_bytes > LARGE_BYTES]}.{number}"
