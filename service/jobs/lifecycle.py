"""The states of a job (interface 3). The statements that change them define the transitions."""

from enum import StrEnum


class Status(StrEnum):
    """The state of a job."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    EXPIRED = "Expired"


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.EXPIRED})
