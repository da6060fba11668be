"""A worker uses all its converters for large inputs as long as that holds up no small ones."""

from contextlib import ExitStack

from nats.aio.client import Client
from nats.aio.msg import Msg

from sandbox.queue import AdmissionQueue
from service.jobs.deliveries import Delivery
from service.usecases.large_inputs import QUIET_SECONDS, LargeInputs

CONVERTERS, PLACES = 2, 4


async def nobody_hears(_lane: str) -> None:
    """Announce a lane to no worker."""


def delivery(size: str) -> Delivery:
    """A message from a lane of this size."""
    reply = f"$JS.ACK.GEOMILL.{size}-0.1.1.1.1700000000000000000.0"
    return Delivery(Msg(Client(), subject=f"geomill.convert.{size}.0.job", reply=reply), nobody_hears)


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def most(large: LargeInputs) -> int:
    """How many large inputs the worker takes, one after the other, while none of them is converted."""
    with ExitStack() as held:
        for count in range(PLACES + 1):
            if not large.may_take():
                return count
            held.enter_context(large.counted(delivery("large")))
    raise AssertionError


def test_they_have_all_converters_while_nothing_small_comes() -> None:
    assert most(LargeInputs(CONVERTERS, PLACES)) == CONVERTERS


def test_they_leave_a_converter_while_small_ones_come() -> None:
    """And for a while after that, so that the next small one need not take turns with them."""
    large = LargeInputs(CONVERTERS, PLACES, clock := Clock())
    clock.now += 2 * QUIET_SECONDS
    with large.counted(delivery("small")):
        clock.now += 2 * QUIET_SECONDS
        assert most(large) == CONVERTERS - 1
    assert most(large) == CONVERTERS - 1
    clock.now += QUIET_SECONDS
    assert most(large) == CONVERTERS


def test_a_single_converter_is_for_both() -> None:
    large = LargeInputs(1, 2)
    with large.counted(delivery("small")):
        assert most(large) == 1


def test_one_that_is_only_stored_needs_no_converter() -> None:
    """But a place: a small one has one in any case."""
    large, queue = LargeInputs(CONVERTERS, PLACES), AdmissionQueue(converters=CONVERTERS, waiting=PLACES)
    with ExitStack() as held:
        for taken in range(1, PLACES):
            assert large.may_take()
            held.enter_context(large.counted(stored := delivery("large")))
            large.note_ticket(stored, ticket := queue.readmit("a"))
            queue.acquire(ticket, 0.0)
            assert most(large) == min(CONVERTERS - 1, PLACES - 1 - taken)
            queue.release(ticket, 0.0)
        assert not large.may_take()
