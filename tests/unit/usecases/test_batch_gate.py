"""The gate of a batch: files are admitted as if all earlier ones had ended."""

from datetime import UTC, datetime
from uuid import uuid4

import anyio
import msgspec
import pytest

from service.errors import Limit, LimitRefusal, Overloaded
from service.ids import JobId
from service.jobs.dispatch import Submission
from service.jobs.lifecycle import Status
from service.jobs.records import Details, Job
from service.metering.ledger import Admission
from service.usecases.convert_batch import AS_BEFORE, SHARED, _BatchGate, outcomes

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ADMITTED = Admission(admitted_at=NOW, retention_hours=48, object_key="key")
USED_UP = "All conversions of this month are used."


def job(status: Status = Status.PROCESSING, details: Details | None = None, error: str | None = None) -> Job:
    """A job of the batch."""
    return Job(
        id=JobId(uuid4()),
        status=status,
        original_file_name="a.geojson",
        input_format="geojson",
        output_format="csv",
        input_size_bytes=1,
        created_at=NOW,
        error_message=error,
        details=details or Details(),
    )


class Attempts:
    """Attempts to admit a file, of which the first ones are refused by a limit."""

    def __init__(self, refused: int, limit: Limit = "conversions") -> None:
        self.made = 0
        self._refused = refused
        self._limit: Limit = limit

    async def __call__(self) -> Admission:
        """Make one attempt."""
        self.made += 1
        if self.made <= self._refused:
            raise LimitRefusal(USED_UP, limit=self._limit)
        return ADMITTED


async def test_a_refusal_waits_for_the_files_before_and_is_tried_again_after_each() -> None:
    """One that fails gives back what it has reserved, so that a sequential run would admit the file."""
    earlier = [Submission(job()), Submission(job())]
    gate, attempts = _BatchGate(earlier), Attempts(refused=2)
    admitted: list[Admission] = []

    async def admit() -> None:
        admitted.append(await gate.admit(attempts))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(admit)
        for number, submission in enumerate(earlier, 1):
            await anyio.wait_all_tasks_blocked()
            assert (attempts.made, admitted) == (number, [])
            submission.finish(msgspec.structs.replace(submission.job, status=Status.FAILED))
    assert (attempts.made, admitted, gate.refusal) == (3, [ADMITTED], None)


@pytest.mark.parametrize("limit", sorted(filter(None, SHARED)))
async def test_a_refusal_by_a_shared_limit_applies_to_all_later_files_once_none_is_in_progress(limit: Limit) -> None:
    """It says which file it refers to: an earlier one."""
    gate = _BatchGate([Submission(job(Status.COMPLETED))])
    with pytest.raises(LimitRefusal, match=USED_UP):
        await gate.admit(Attempts(refused=1, limit=limit))
    assert gate.refusal is not None
    assert (gate.refusal.message, gate.refusal.limit) == (AS_BEFORE + USED_UP, limit)


async def test_a_refusal_by_a_limit_of_the_file_itself_stands_at_once() -> None:
    """No other file of the batch can lift it, and it concerns no other."""
    gate, attempts = _BatchGate([Submission(job())]), Attempts(refused=1, limit="fileSize")
    with pytest.raises(LimitRefusal):
        await gate.admit(attempts)
    assert (attempts.made, gate.refusal) == (1, None)


@pytest.mark.parametrize("error", [USED_UP, AS_BEFORE + USED_UP])
def test_a_job_of_an_earlier_request_counts_like_one_of_this_request(error: str) -> None:
    """A refusal that it passed on itself is not introduced twice."""
    gate = _BatchGate([])
    gate.remember(job(Status.FAILED, Details(limit="wallet"), error))
    assert gate.refusal is not None
    assert gate.refusal.message == AS_BEFORE + USED_UP


async def test_a_file_before_whose_end_is_not_known_here_ends_the_request() -> None:
    """Whether the refusal stands is not known either."""
    running = Submission(job())
    running.mark_lost()
    with pytest.raises(Overloaded):
        await _BatchGate([running]).admit(Attempts(refused=1))


async def test_who_is_not_told_how_a_batch_ended_learns_its_jobs() -> None:
    """Also those that were charged; a single file's error names its job already."""
    done, lost = Submission(job(Status.COMPLETED)), Submission(job())
    done.finish(done.job)
    lost.mark_lost()
    with pytest.raises(Overloaded, match=f"query its jobs: {done.job.id}, {lost.job.id}"):
        await outcomes([done, lost])
    with pytest.raises(Overloaded, match=r"for the result of the conversion\.$"):
        await outcomes([lost])
