"""Who is promised a place: everybody while there is room, then accounts below their share, then nobody."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import Overloaded
from service.ids import AccountId
from service.jobs.promises import (
    BURST_EACH,
    BURST_SECONDS,
    FEW_EACH,
    PROMPT_SECONDS,
    QUEUE_SECONDS,
    REFUSING_SECONDS,
    RESERVED_SHARE,
    VISITORS,
    Promise,
    Promises,
)

CONVERTERS = 2
MOST = 1000
BURST = CONVERTERS * BURST_EACH
"""So many may wait while nothing is known of the rate."""
accounts = [AccountId(UUID(int=number)) for number in range(200)]
flooding, other = accounts[:2]


@dataclass
class Service:
    """A service with a known clock and a known number of taken places."""

    most: int = MOST
    converters: int = CONVERTERS
    taken: int = 0
    taken_by: dict[str, int] = field(default_factory=dict)
    seconds: float = 100.0
    promises: Promises = field(init=False)

    def __post_init__(self) -> None:
        self.promises = Promises(
            converters=self.converters,
            most=self.most,
            taken=lambda: self.taken,
            taken_by=self.taken_by,
            now=lambda: self.seconds,
        )

    def flood(self, account: AccountId = flooding) -> list[Promise]:
        """Take everything that the account is promised."""
        promises: list[Promise] = []
        while self.is_promised(account, promises.append):
            assert len(promises) < 2 * MOST
        return promises

    def is_promised(self, account: AccountId, note: Callable[[Promise], None] = lambda _: None) -> bool:
        """Ask for a place."""
        try:
            note(self.promises.ask(account))
        except Overloaded:
            return False
        return True

    def visit(self) -> Promise:
        """Admit a caller that is not known yet."""
        promise = self.promises.seek_visit()
        assert promise is not None
        return promise

    def end_jobs(self, number: int, every: float) -> None:
        """Let jobs end one after another while others wait."""
        self.taken = CONVERTERS + 1
        for _ in range(number):
            self.seconds += every
            self.promises.note_end()


def test_a_few_are_let_in_for_each_converter_however_slow_the_service_is() -> None:
    service = Service()
    service.end_jobs(100, every=10.0)
    service.taken = 0
    assert len(service.flood()) == CONVERTERS + CONVERTERS * FEW_EACH


def test_one_slow_job_is_enough_to_let_fewer_in() -> None:
    """A later client would have to wait for whatever takes longer than that."""
    service = Service()
    service.end_jobs(2, every=5.0)
    assert service.promises.depth < CONVERTERS + BURST


def test_the_depth_follows_soon_when_large_files_come_after_small_ones() -> None:
    """A client that is let in for the rate of small files would wait for minutes."""
    service = Service()
    service.end_jobs(2000, every=1 / 100)
    service.end_jobs(8, every=1.5)
    assert service.promises.depth <= CONVERTERS + BURST_SECONDS


def test_a_burst_of_small_files_is_let_in_once_large_ones_are_over() -> None:
    service = Service()
    service.end_jobs(8, every=1.5)
    service.taken = 0
    service.promises.note_end()
    assert service.promises.depth == CONVERTERS + BURST


@pytest.mark.parametrize(("rate", "waiting"), [(20, CONVERTERS * BURST_EACH), (6, 6 * BURST_SECONDS)])
def test_a_burst_is_let_in_that_can_be_begun_within_a_few_seconds(rate: int, waiting: float) -> None:
    service = Service()
    service.end_jobs(1000, every=1 / rate)
    assert service.promises.depth == pytest.approx(CONVERTERS + waiting, abs=1)


@pytest.mark.parametrize("rate", [150, 200])
def test_as_many_are_let_in_as_can_be_begun_in_time(rate: int) -> None:
    service = Service()
    service.end_jobs(1000, every=1 / rate)
    assert service.promises.depth == pytest.approx(CONVERTERS + QUEUE_SECONDS * rate, abs=2)


def test_a_flood_waits_at_most_twice_as_long_as_a_burst() -> None:
    """The last to be let in waits for all before it, and 64 clients that take turns wait for 64."""
    service = Service()
    service.end_jobs(1000, every=1 / 240)
    service.taken = 0
    assert len(service.flood()) <= 2 * 64


def test_the_rate_is_that_of_a_service_that_has_enough_to_do() -> None:
    """Jobs that end far apart because few were sent do not count."""
    service = Service()
    service.end_jobs(1000, every=1 / 200)
    service.taken = 0
    for _ in range(1000):
        service.seconds += 5
        service.promises.note_end()
    assert service.promises.depth > CONVERTERS + QUEUE_SECONDS * 190


def test_the_time_before_others_waited_says_nothing_of_the_rate() -> None:
    service = Service()
    service.end_jobs(1000, every=1 / 200)
    service.taken = 0
    service.promises.note_end()
    service.seconds += 3600
    service.end_jobs(1, every=1 / 200)
    assert service.promises.depth > CONVERTERS + QUEUE_SECONDS * 190


def test_the_queue_is_the_upper_bound() -> None:
    service = Service(most=3)
    service.end_jobs(1000, every=1 / 200)
    service.taken = 1
    assert len(service.flood()) == 2


def test_an_account_within_its_share_is_let_in_while_another_floods() -> None:
    service = Service()
    service.flood()
    assert not service.is_promised(flooding)
    assert service.is_promised(other)


def test_a_service_is_full_when_nobody_would_be_let_in() -> None:
    """A service that one account floods is not full: it serves the others."""
    service = Service()
    was_full = []
    for account in accounts:
        service.flood(account)
        was_full.append(service.promises.is_full)
    assert (was_full[0], was_full[-1]) == (False, True)
    assert not service.is_promised(AccountId(UUID(int=9999)))


def test_a_service_without_places_is_full() -> None:
    service = Service(most=3)
    service.taken = 3
    assert service.promises.is_full


def test_an_account_within_its_share_is_let_in_when_the_service_has_become_slow_below_a_flood() -> None:
    """What was admitted at a better rate belongs to the flooding account; the depth has since fallen below it."""
    service = Service()
    service.taken = service.taken_by[str(flooding)] = len(service.flood())
    for _ in range(50):
        service.seconds += 5.0
        service.promises.note_end()
    assert service.promises.depth < service.taken / 1.5
    assert not service.is_promised(flooding)
    assert service.is_promised(other)


def test_places_in_the_queue_count_for_an_account_as_promises_do() -> None:
    """Jobs in the queue use an account's share like promises; places for others stay free."""
    service = Service()
    for promise in service.flood():
        promise.release()
    service.taken = service.taken_by[str(flooding)] = CONVERTERS + BURST
    assert not service.is_promised(flooding)
    assert service.is_promised(other)


def test_an_account_has_its_places_once_while_its_requests_wait_for_their_answers() -> None:
    service = Service()
    for promise in service.flood()[: BURST // 2]:
        promise.release()
        service.taken += 1
        service.taken_by[str(flooding)] = service.taken
    assert not service.is_promised(flooding), "all places are taken or promised"
    service.taken -= 1
    service.taken_by[str(flooding)] = service.taken
    assert service.is_promised(flooding)


def test_an_account_that_floods_too_gets_no_more_than_what_is_reserved() -> None:
    service = Service()
    first = len(service.flood())
    assert 0 < len(service.flood(other)) <= first / 2


def test_of_many_accounts_that_flood_none_has_much_more_than_another() -> None:
    service = Service()
    held = [len(service.flood(account)) for account in accounts]
    assert sum(held) <= (1 + 1 / RESERVED_SHARE) * (CONVERTERS + BURST) + 1


def test_while_the_service_refuses_nobody_has_a_second_file_waiting_before_others_have_one() -> None:
    """The second file would wait until all others have had a turn, those that come later included."""
    service = Service()
    flooders = accounts[: CONVERTERS + BURST]
    promises: list[Promise] = []
    assert all(service.is_promised(account, promises.append) for account in flooders)
    assert not service.is_promised(flooders[1])
    promises[0].release()
    assert not service.is_promised(flooders[1])
    assert service.is_promised(flooders[0])
    promises[2].release()
    service.seconds += REFUSING_SECONDS
    assert service.is_promised(flooders[1]), "a service that refuses nobody has room for everybody's files"


def test_a_converter_without_work_is_promised_to_whoever_asks() -> None:
    """The shares of a few accounts may be fewer than the converters where little may wait."""
    service = Service(converters=4, most=5)
    for promise in service.flood():
        promise.release()
    assert [service.is_promised(account) for account in accounts[:3]] == [True] * 3
    assert [service.is_promised(accounts[0]) for _ in range(2)] == [True, False]


def test_what_is_released_can_be_promised_again_and_releasing_twice_changes_nothing() -> None:
    service = Service()
    promise = service.flood()[0]
    promise.release()
    promise.release()
    assert service.is_promised(flooding)
    assert not service.is_promised(flooding)


def test_a_place_that_is_taken_counts_once() -> None:
    service = Service()
    promise = service.flood()[0]
    promise.release()
    service.taken = service.taken_by[str(flooding)] = 1
    assert not service.is_promised(flooding)
    service.taken = service.taken_by[str(flooding)] = 0
    promise.release()
    assert service.is_promised(flooding)
    assert not service.is_promised(flooding)


def test_slow_uploads_keep_nobody_out_and_their_promises() -> None:
    service = Service(most=3 * (CONVERTERS + BURST))
    service.flood()
    service.seconds += PROMPT_SECONDS + 1
    assert len(service.flood(other)) == CONVERTERS + BURST
    for account in accounts[2:]:
        service.seconds += PROMPT_SECONDS + 1
        service.flood(account)
    assert not service.is_promised(AccountId(UUID(int=len(accounts)))), "all places are promised"


def test_slow_uploads_of_one_account_leave_places_to_others() -> None:
    """Each costs it some kilobytes per second for an hour; a thousand of them kept everybody else out."""
    service = Service()
    while service.flood():
        service.seconds += PROMPT_SECONDS + REFUSING_SECONDS
    assert len(service.flood(other)) >= BURST
    assert not service.promises.is_full


def test_slow_uploads_of_a_few_accounts_leave_places_to_others() -> None:
    """Six of them, at two megabytes a second, kept everybody else out."""
    service = Service()
    for account in accounts[:10]:
        while service.flood(account):
            service.seconds += PROMPT_SECONDS + REFUSING_SECONDS
    assert not service.promises.is_full
    assert all(service.is_promised(account) for account in accounts[10:50])


def test_slow_uploads_take_nothing_from_the_share_of_their_account() -> None:
    """Otherwise an account with many of them is refused as long as it asks, beside converters that have no work."""
    service = Service()
    service.flood()
    service.seconds += PROMPT_SECONDS + 1
    for promise in service.flood():
        promise.release()
    assert service.promises.is_refusing
    assert len(service.flood()) == CONVERTERS + BURST


def test_few_strangers_are_looked_up_at_a_time_while_the_service_is_full() -> None:
    service = Service()
    for _ in range(10 * VISITORS):
        service.visit().release()
    service.flood()
    visitors = [service.visit() for _ in range(VISITORS)]
    assert service.promises.seek_visit() is None
    visitors[0].release()
    service.visit()


def test_no_more_strangers_are_let_in_together_than_there_are_places() -> None:
    """Each may turn out to belong to an account that is promised one."""
    service = Service()
    for _ in range(CONVERTERS + BURST):
        service.visit()
    assert service.promises.seek_visit() is None


def test_the_service_is_refusing_for_a_moment_after_a_refusal() -> None:
    service = Service()
    service.flood()
    assert service.promises.is_refusing
    service.seconds += REFUSING_SECONDS
    assert not service.promises.is_refusing


def test_those_who_are_refused_are_told_different_times() -> None:
    service = Service()
    service.flood()
    told = set()
    for _ in range(1500):
        service.seconds += 0.001
        with pytest.raises(Overloaded) as refused:
            service.promises.ask(flooding)
        told.add(refused.value.retry_after_seconds)
    assert len(told) > 1
    assert min(told) > 0


@given(steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["ask", "release", "wait"]))))
def test_nothing_is_left_of_what_has_ended(steps: list[tuple[int, str]]) -> None:
    """In whatever order things happen, the whole depth is available once all have ended."""
    service = Service()
    promises: list[Promise] = []
    for number, step in steps:
        if step == "ask":
            service.is_promised(accounts[number], promises.append)
        elif step == "wait":
            service.seconds += number
        elif promises:
            promises[number % len(promises)].release()
    for promise in promises:
        promise.release()
    assert len(service.flood()) == CONVERTERS + BURST
