"""What a worker tells the gateway of a job that has ended: as the database has recorded its end, sealed.

It need not arrive, and may come from anyone: without the seal of its job, it only has the gateway look into the
database.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from service.ids import JobId
from service.jobs.lifecycle import ENDED, Status
from service.jobs.records import Job
from service.jobs.seals import Proof, is_seal, seal_of

_KIND: Final = b"ended"
"""Begins what is sealed, unlike any handover, so that none passes for a notice."""


class Notice(msgspec.Struct, frozen=True, array_like=True):
    """A job that has ended; `end` is its record, empty if the gateway has to look."""

    job_id: JobId
    end: bytes = b""
    seal: bytes = b""


def notice_of(ended: Job, secret: str) -> Notice:
    """Tell of a job whose end is recorded; `secret` is that of its handover.

    It is the key of the output of the first worker, so that the notice need not contain it; other keys are not told.
    """
    if ended.object_key not in {None, secret}:
        return Notice(ended.id)
    end = msgspec.msgpack.encode(msgspec.structs.replace(ended, object_key=None))
    return Notice(ended.id, end, seal_of(_digest(end), secret))


def end_in(notice: Notice, secret: str) -> Job | None:
    """Return the ended job if whoever tells of it had its secret; None if the database has to be asked."""
    if not is_seal(Proof(_digest(notice.end), notice.seal), secret):
        return None
    try:
        job = msgspec.msgpack.decode(notice.end, type=Job)
    except msgspec.DecodeError:  # of another version
        return None
    if job.id != notice.job_id or job.status not in ENDED:
        return None
    return msgspec.structs.replace(job, object_key=secret if job.status is Status.COMPLETED else None)


def write_notices(notices: Sequence[Notice], most_bytes: int) -> bytes:
    """Return one message, without the records if they would make it larger than `most_bytes`."""
    message = msgspec.msgpack.encode(notices)
    if len(message) > most_bytes:
        message = msgspec.msgpack.encode([Notice(notice.job_id) for notice in notices])
    return message


def read_notices(message: bytes) -> list[Notice]:
    """Read such a message; nothing if it is none."""
    try:
        return msgspec.msgpack.decode(message, type=list[Notice])
    except msgspec.DecodeError:
        return []


def _digest(end: bytes) -> bytes:
    return sha256(_KIND + end).digest()
