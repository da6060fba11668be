"""The list of steps is consistent, and states for every error what becomes of the job."""

from asyncio import CancelledError
from itertools import pairwise
from typing import get_type_hints

import pytest

from service.errors import DatabaseUnavailable, LimitRefusal, NoRoom, Overloaded, Rejection, StorageUnavailable
from service.jobs.spec import JobSpec
from service.usecases.pipeline import ACCEPT, ANYWHERE, CONVERT, DEFECT, DELIVER, Progress, Step
from service.usecases.steps.accepting import Received
from service.usecases.steps.converting import Started, start
from service.usecases.steps.delivering import Ended, ForgottenError

STEPS = {step.do.__name__: step for step in (*ACCEPT, *CONVERT, *DELIVER)}
REFUSED = LimitRefusal("too much", limit="data")


def test_the_steps_stand_in_the_order_of_the_pipeline() -> None:
    """From the received upload to the settled job."""
    before, after = ["detect", "choose", "admit"], ["inspect", "plan", "convert", "verify"]
    assert list(STEPS) == [*before, *after, "pack", "secure", "store", "settle"]


@pytest.mark.parametrize(("steps", "first"), [(ACCEPT, Received), ((*CONVERT, *DELIVER), Started)])
def test_each_step_takes_the_record_that_the_step_before_it_returned(steps: tuple[Step, ...], first: type) -> None:
    """So the list reads in the order in which it runs."""
    hints = [list(get_type_hints(step.do).values()) for step in steps]
    assert hints[0][1] is first
    for (*_, returned), (_, taken, _) in pairwise(hints):
        assert issubclass(returned, taken)


def test_the_last_step_returns_the_ended_job_and_the_first_begins_with_its_specification() -> None:
    """What crosses the seam, and what the response is made from."""
    assert get_type_hints(DELIVER[-1].do)["return"] is Ended
    assert get_type_hints(start)["spec"] is JobSpec


@pytest.mark.parametrize(
    ("name", "error", "outcome"),
    [
        *((name, Rejection("no"), "rejected") for name in ("inspect", "plan", "convert", "verify", "pack")),
        *((name, ForgottenError(), "forgotten") for name in ("secure", "settle")),
        ("store", StorageUnavailable("down", "refused"), "storage"),
        ("store", CancelledError(), "stopped"),
        ("secure", DatabaseUnavailable("away", 5), "unknown"),
        ("settle", Overloaded("elsewhere", 2), "unknown"),
        ("plan", ZeroDivisionError(), "defect"),
        ("store", Rejection("no step of the store may say that"), "defect"),
    ],
)
async def test_every_error_of_a_job_has_one_outcome(name: str, error: BaseException, outcome: str) -> None:
    """By the step in which it happens."""
    progress = await _failed_in(STEPS[name], error, Progress("record", ANYWHERE))
    failure = progress.failure(error)
    assert failure is not None
    assert failure.outcome == outcome
    assert failure.message_for(error) == (failure.message or getattr(error, "message", DEFECT))
    assert progress.record == "record"


@pytest.mark.parametrize(
    ("name", "error", "is_final"),
    [
        *((name, Rejection("no"), True) for name in ("inspect", "plan", "convert", "verify", "pack")),
        *((name, NoRoom("full"), False) for name in ("inspect", "plan", "convert", "verify", "pack")),
        ("store", StorageUnavailable("down", "refused"), False),
        ("store", CancelledError(), False),
    ],
)
async def test_a_repeat_with_its_key_converts_what_only_the_service_failed(
    name: str, error: BaseException, *, is_final: bool
) -> None:
    """Its client is told to try again, which must not return the same failure for a day."""
    failure = (await _failed_in(STEPS[name], error, Progress("record", ANYWHERE))).failure(error)
    assert failure is not None
    assert failure.says_nothing_of_the_file is not is_final


async def test_before_the_seam_a_refusal_is_the_files_and_all_else_the_requests() -> None:
    """A refused file becomes a Failed job; an unavailable database is reported as the request's fault."""
    progress = await _failed_in(STEPS["admit"], REFUSED, Progress("record"))
    refusal = progress.failure(REFUSED)
    assert refusal is not None
    assert refusal.outcome == "refused"
    assert progress.failure(DatabaseUnavailable("away", 5)) is None


def test_only_once_storing_has_begun_there_may_be_an_output() -> None:
    """This decides whether a failed job leaves a key for the sweep."""
    assert [name for name, step in STEPS.items() if step.may_have_stored] == ["store", "settle"]


async def _failed_in(step: Step, error: BaseException, progress: Progress[str]) -> Progress[str]:
    async def fail(_tools: object, _record: object) -> None:
        raise error

    with pytest.raises(type(error)):
        await progress.run([Step(fail, step.failures, step.may_have_stored)], None)
    return progress
