"""What a worker tells a gateway of ended jobs: the gateway believes only what is sealed with the secret of the job."""

from uuid import uuid4

import msgspec

from service.ids import JobId
from service.jobs.lifecycle import Status
from service.jobs.notices import Notice, end_in, notice_of, read_notices, write_notices
from service.jobs.records import Job
from tests.unit.jobs.test_handover import handover

SECRET = "0" * 32
MOST_BYTES = 1 << 20


def ended() -> Job:
    """A job that has failed."""
    return msgspec.structs.replace(handover().job, status=Status.FAILED, error_message="no")


def completed(key: str) -> Job:
    """A job whose output is stored under this key."""
    return msgspec.structs.replace(handover().job, status=Status.COMPLETED, object_key=key)


def test_ends_that_are_told_are_understood() -> None:
    """Several in one message, which does not contain the secret, although that is the key of an output."""
    jobs = [ended(), completed(SECRET)]
    message = write_notices([notice_of(job, SECRET) for job in jobs], MOST_BYTES)
    assert SECRET.encode() not in message
    assert [end_in(notice, SECRET) for notice in read_notices(message)] == jobs


def test_another_key_is_not_told() -> None:
    """The gateway finds that of a later attempt in the database."""
    job = completed("1" * 32)
    assert notice_of(job, SECRET) == Notice(job.id)


def test_an_end_needs_the_seal_of_its_job() -> None:
    """Neither another secret, nor another end or job, nor none at all, nor a job that is open, will do."""
    notice = notice_of(ended(), SECRET)
    assert end_in(notice, "1" * 32) is None
    assert end_in(msgspec.structs.replace(notice, end=notice_of(ended(), SECRET).end), SECRET) is None
    assert end_in(msgspec.structs.replace(notice, job_id=JobId(uuid4())), SECRET) is None
    assert end_in(Notice(notice.job_id), SECRET) is None
    assert end_in(notice_of(handover().job, SECRET), SECRET) is None


def test_a_message_that_would_be_too_large_only_names_its_jobs() -> None:
    """The server would refuse it."""
    job = ended()
    large = notice_of(msgspec.structs.replace(job, error_message="no" * MOST_BYTES), SECRET)
    small = notice_of(ended(), SECRET)
    heard = read_notices(write_notices([large, small], MOST_BYTES))
    assert heard == [Notice(large.job_id), Notice(small.job_id)]


def test_a_damaged_message_tells_nothing() -> None:
    """Anyone who reaches the queue can send one."""
    assert read_notices(b"damaged") == []
