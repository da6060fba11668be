"""The lag of the event loop is recorded for as long as it lasts."""

import time
from itertools import pairwise

import anyio.lowlevel
from prometheus_client import REGISTRY

from service.telemetry.lag import EVERY_SECONDS, IDLE_SAMPLES, watch_lag

HELD_UP_SECONDS = 0.6


def looks(*, up_to: str = "+Inf") -> float:
    """How often the lag was at most this many seconds."""
    return REGISTRY.get_sample_value("geomill_event_loop_lag_seconds_bucket", {"le": up_to}) or 0.0


async def test_a_loop_that_is_held_up_is_late_at_each_time_that_it_misses() -> None:
    """And not only once: in a delay of 0.6 s, more than 0.3 s are more than 0.25 s late."""
    before, late_before = looks(), looks() - looks(up_to="0.25")
    expected = HELD_UP_SECONDS / EVERY_SECONDS - 1
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_lag)
        await anyio.lowlevel.checkpoint()
        time.sleep(HELD_UP_SECONDS)  # noqa: ASYNC251 -- to hold it up is what this is about
        while looks() - before < expected:
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert looks() - looks(up_to="0.25") - late_before >= (HELD_UP_SECONDS - 0.25) / EVERY_SECONDS - 1


async def test_a_loop_that_computes_is_sampled_each_time() -> None:
    """It is not idle, so each sample counts once."""
    seen: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_lag)
        while len(seen) < IDLE_SAMPLES:
            until = time.thread_time() + EVERY_SECONDS / 5
            while time.thread_time() < until:
                pass
            await anyio.lowlevel.checkpoint()
            if not seen or looks() > seen[-1]:
                seen.append(looks())
        tasks.cancel_scope.cancel()
    assert min(later - sooner for sooner, later in pairwise(seen)) == 1
