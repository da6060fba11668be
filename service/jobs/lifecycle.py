"""The states of a job and every transition between them (interface 3)."""

from enum import StrEnum


class Status(StrEnum):
    """Where a job stands."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    EXPIRED = "Expired"


TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.PROCESSING, Status.COMPLETED, Status.FAILED}),
    Status.PROCESSING: frozenset({Status.COMPLETED, Status.FAILED}),
    Status.COMPLETED: frozenset({Status.EXPIRED}),
    Status.FAILED: frozenset(),
    Status.EXPIRED: frozenset(),
}

ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.EXPIRED})
