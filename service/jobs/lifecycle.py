"""The states of a job (interface 3). The statements that change them define the transitions."""

from enum import StrEnum
from typing import Literal


class Status(StrEnum):
    """The state of a job."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    EXPIRED = "Expired"


Stage = Literal["waiting", "reading", "converting", "verifying", "storing"]
"""What happens to an open job."""

ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.EXPIRED})
