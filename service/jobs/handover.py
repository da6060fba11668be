"""What a gateway tells the workers of a job: plain data with a version, which any worker of that version understands.

The input is inside if it is small and a client waits for the result, so that its gateway still has it; otherwise it is
in the store, under the key that the job's row has. A worker recognises the input again: where the files of an archive
lie is a matter of its host.
"""

from datetime import date
from hashlib import sha256
from typing import Final
from zlib import crc32

import msgspec

from service.formats.request import ConversionRequest
from service.ids import AccountId, ServerId
from service.jobs.records import Job
from service.jobs.seals import Proof, seal_of

VERSION: Final = 2
LANES: Final = 16
"""Each account has one lane a day, so that the backlog of one account waits in one of them."""
LARGE_BYTES: Final = 8 << 20
"""Inputs above this size have separate lanes, so that they do not delay small ones."""
SIZES: Final = ("small", "large")


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
    seal: bytes = b""
    """Proves that the rest comes from the gateway that admitted the job; see `sealed`."""

    @property
    def lane(self) -> str:
        """The lane in which the job waits."""
        return lane_of(self.account_id, self.job.created_at.date(), self.job.input_size_bytes)

    @property
    def name(self) -> str:
        """A name that is unique among all handovers."""
        return f"{self.job.id}/{self.job.attempt}"


class _AnyVersion(msgspec.Struct, frozen=True):
    version: int


def read_handover(message: bytes) -> HandOver | None:
    """Read a message from a gateway; None if its version is unknown to this process.

    Raises:
        msgspec.DecodeError: it is damaged, or not from a gateway.
    """
    if msgspec.msgpack.decode(message, type=_AnyVersion).version != VERSION:
        return None
    return msgspec.msgpack.decode(message, type=HandOver)


def write_handover(handover: HandOver) -> bytes:
    """Return the message, which `read_handover` reads."""
    return msgspec.msgpack.encode(handover)


def sealed(handover: HandOver, secret: str) -> HandOver:
    """Return the handover with its seal; `secret` is the key that admission recorded for the output."""
    return msgspec.structs.replace(handover, seal=seal_of(proof_of(handover).digest, secret))


def proof_of(handover: HandOver) -> Proof:
    """Return what shows that whoever sealed the handover had the secret, and that nothing was changed since."""
    unsealed = write_handover(msgspec.structs.replace(handover, seal=b""))
    return Proof(sha256(unsealed).digest(), handover.seal)


def lane_of(account_id: AccountId, day: date, size_bytes: int) -> str:
    """Return the lane of an account's inputs of this size, as `small.7`; another one every day."""
    number = crc32(account_id.bytes + day.isoformat().encode()) % LANES
    return f"{SIZES[size_bytes > LARGE_BYTES]}.{number}"
