"""The lag of the event loop is recorded for as long as it lasts."""

import time
from statistics import median

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
    """Most of its samples count once; a host with much else to do may make it look idle for a moment."""
    added: list[float] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_lag)
        before = looks()
        while len(added) < 2 * IDLE_SAMPLES:
            await anyio.lowlevel.checkpoint()
            if (now := looks()) != before:
                added.append(now - before)
                before = now
        tasks.cancel_scope.cancel()
    assert median(added) == 1
