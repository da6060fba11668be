"""The states of a job (interface 3). The statements that change them define the transitions."""

from enum import StrEnum
from typing import Literal, NamedTuple


class Status(StrEnum):
    """The state of a job."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    FAILED = "Failed"
    EXPIRED = "Expired"


Stage = Literal["waiting", "reading", "converting", "verifying", "storing"]
"""What happens to an open job."""


class Situation(NamedTuple):
    """The stage that an open job is in, and which share of that stage is done, from 0 to 1; None if that is unknown."""

    stage: Stage
    share: float | None = None


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.EXPIRED})
