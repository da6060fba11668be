"""The lag of the event loop: the additional time that everything in it waits.

Samples are due at fixed times. A blocked loop is therefore late for every sample that it missed, so that the
shares of the histogram are shares of time: a second of blocking counts as a second.

An idle loop takes the next sample later, and counts it for all that it stands for, so the shares stay the same: an
idle server otherwise does little else than wake up for samples. A timer takes each, not a task: waking a task costs
several times as much.
"""

import asyncio
import time

import anyio

from service.telemetry.metrics import EVENT_LOOP_LAG_SECONDS

EVERY_SECONDS = 0.05
IDLE_SAMPLES = 20
"""For how many samples one of an idle loop stands."""
MOST_SECONDS = 10.0
"""The longest blocking that is counted, so that a process stopped for hours need not catch up on all samples."""
_IDLE_SHARE = 0.05
"""The share of a core that an idle loop takes at most; periodic tasks take less on the slowest hosts."""


async def watch_lag() -> None:
    """Observe the lag of this event loop forever; the resolution of timers adds up to a millisecond."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None
    sampled, computed = loop.time(), time.thread_time()

    def expect(due: float, samples: int) -> None:
        nonlocal timer
        timer = loop.call_at(due, sample, due, samples)

    def sample(due: float, samples: int) -> None:
        nonlocal sampled, computed
        since, before = sampled, computed
        sampled, computed = loop.time(), time.thread_time()
        for _ in range(samples):
            EVENT_LOOP_LAG_SECONDS.observe(max(0.0, sampled - due))
        has_missed_next = sampled >= due + EVERY_SECONDS
        is_idle = not has_missed_next and computed - before < _IDLE_SHARE * (sampled - since)
        following = IDLE_SAMPLES if is_idle else 1
        expect(max(due, sampled - MOST_SECONDS) + following * EVERY_SECONDS, following)

    expect(loop.time() + EVERY_SECONDS, 1)
    try:
        await anyio.sleep_forever()
    finally:
        if timer is not None:
            timer.cancel()
