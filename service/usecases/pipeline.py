"""The conversion of one upload as a list of steps, each with its possible failures.

    receive ▸ detect ▸ choose ▸ admit ║ inspect ▸ plan ▸ convert ▸ verify ▸ pack ▸ secure ▸ store ▸ settle ▸ respond

`http.api.upload` receives before the steps below, `http.api.render` responds after them. A step takes the record that
the previous step returned and returns a new one; no step calls another. At the double line the upload passes from its
request to its job: `accept_upload` runs the steps before it, `run_job` those after it.
"""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from service.engine.diagnostics import RunLost
from service.errors import GeomillError, NoRoom, Rejection, RetryableFault, StorageUnavailable
from service.jobs.lifecycle import Situation, Stage
from service.usecases.ending import FORGOTTEN, STOPPED, JobOutcome
from service.usecases.steps.accepting import admit, choose, detect
from service.usecases.steps.converting import convert, inspect, plan, verify
from service.usecases.steps.delivering import ForgottenError, pack, secure, settle, store

_Record = TypeVar("_Record")

LOST = "The service lost the converter of this file twice. Nothing was counted; send the file again."
DEFECT = "The conversion failed because of an error in the service. Nothing was counted; the error was recorded."


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error, and how it ends a job; without a `message` the client receives the error's own message."""

    raised: type[BaseException]
    outcome: JobOutcome
    message: str | None = None
    says_nothing_of_the_file: bool = False
    """Whether a repeat with the same idempotency key converts the file again."""

    def message_for(self, error: BaseException) -> str:
        """Return the message for the client."""
        return self.message or (error.message if isinstance(error, GeomillError) else DEFECT)


class Step(msgspec.Struct, frozen=True):
    """A step: its function (of tools and the previous record) and its expected failures."""

    do: Callable[[Any, Any], Awaitable[Any]]
    failures: tuple[Failure, ...] = ()
    may_have_stored: bool = False
    """Whether the store may contain an output once this step has begun."""
    stage: Stage = "waiting"
    """What happens to the job meanwhile, in the words of the interface."""
    part: str = ""
    """Its span within that of `convert`."""


_REFUSED = Failure(raised=Rejection, outcome="refused")
_REJECTED = (
    Failure(raised=NoRoom, outcome="rejected", says_nothing_of_the_file=True),
    Failure(raised=Rejection, outcome="rejected"),
)
_UNSTORED = Failure(raised=StorageUnavailable, outcome="storage", says_nothing_of_the_file=True)

ACCEPT = (Step(detect, (_REFUSED,)), Step(choose, (_REFUSED,)), Step(admit, (_REFUSED,)))
"""Bound to the request: until the job is submitted, a client that disconnects leaves nothing behind."""

CONVERT = (
    Step(inspect, _REJECTED, stage="reading", part="inspecting"),
    Step(plan, _REJECTED, stage="reading", part="planning"),
    Step(convert, _REJECTED, stage="converting", part="converting"),
    Step(verify, _REJECTED, stage="verifying", part="verifying"),
)
"""Bound to the job, with a converter from the first command to the last."""

DELIVER = (
    Step(pack, _REJECTED, stage="storing"),
    Step(secure, stage="storing"),
    Step(store, (_UNSTORED,), may_have_stored=True, stage="storing"),
    Step(settle, may_have_stored=True, stage="storing"),
)
"""Bound to the job, after its converter was released."""

ANYWHERE = (
    Failure(raised=CancelledError, outcome="stopped", message=STOPPED, says_nothing_of_the_file=True),
    Failure(raised=ForgottenError, outcome="forgotten", message=FORGOTTEN, says_nothing_of_the_file=True),
    Failure(raised=RetryableFault, outcome="unknown"),
    Failure(raised=RunLost, outcome="defect", message=LOST, says_nothing_of_the_file=True),
    Failure(raised=Exception, outcome="defect", message=DEFECT),
)
"""Failures that can occur in every step of a job."""


class Progress(Generic[_Record]):
    """The progress of an upload: the record of the last completed step, and the step that was begun after it."""

    def __init__(self, record: _Record, anywhere: Sequence[Failure] = ()) -> None:
        """Start with `record`; `anywhere` are failures that can occur in every step."""
        self.record = record
        self.step: Step | None = None
        self.on_step: Callable[[str], None] | None = None
        """Is called with its part when a step begins."""
        self.share: Callable[[], float | None] | None = None
        """Returns which share of the current step is done, from 0 to 1, or None; None if that is unknown."""
        self._anywhere = anywhere

    async def run(self, steps: Sequence[Step], tools: object) -> Any:
        """Run `steps` in order and return the record of the last; raises what a step raises."""
        for self.step in steps:
            if self.on_step is not None:
                self.on_step(self.step.part)
            self.record = await self.step.do(tools, self.record)
        return self.record

    def stage(self) -> Stage:
        """Return what happens to the job now."""
        return self.step.stage if self.step else "waiting"

    def situation(self) -> Situation:
        """Return what happens to the job now, and how much of that is done."""
        return Situation(self.stage(), self.share() if self.share is not None else None)

    def failure(self, error: BaseException) -> Failure | None:
        """Return what an error of the current step means for the job; None if it does not concern the job."""
        expected = (*(self.step.failures if self.step else ()), *self._anywhere)
        return next((failure for failure in expected if isinstance(error, failure.raised)), None)
