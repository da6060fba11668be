"""The states of a job (interface 3). Which may follow which is decided by the statements that change them."""

from enum import StrEnum


class Status(StrEnum):
    """Where a job stands."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    EXPIRED = "Expired"


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.EXPIRED})
