"""Callers wait for the end of a job within limits, and are woken together."""

from contextlib import ExitStack
from uuid import UUID

from service.ids import AccountId, JobId
from service.jobs.ends import EndWatch

A, B = AccountId(UUID(int=1)), AccountId(UUID(int=2))
JOB, OTHER = JobId(UUID(int=3)), JobId(UUID(int=4))


def test_those_who_wait_for_a_job_are_woken_together() -> None:
    """And no others; afterwards nothing of them remains."""
    watch = EndWatch(most=10, most_each=10)
    with watch.watching(JOB, A) as first, watch.watching(JOB, B) as second, watch.watching(OTHER, A) as third:
        assert watch.watched == {JOB, OTHER}
        watch.wake(JOB)
        assert (first.is_set(), second.is_set(), third.is_set()) == (True, True, False)
    assert watch.watched == frozenset()


def test_who_finds_no_place_does_not_wait() -> None:
    """Beyond an account's limit or the total limit; when a waiter leaves, its place is free again."""
    watch = EndWatch(most=3, most_each=2)
    for _ in range(2):
        with ExitStack() as waiting:
            waits = [not waiting.enter_context(watch.watching(JOB, account)).is_set() for account in (A, A, A, B, B)]
        assert waits == [True, True, False, True, False]


def test_nobody_waits_while_the_process_stops() -> None:
    """Those that do wait are woken."""
    watch = EndWatch(most=3, most_each=3)
    with watch.watching(JOB, A) as before:
        watch.stop()
        assert before.is_set()
        with watch.watching(OTHER, A) as after:
            assert after.is_set()
