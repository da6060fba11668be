"""The lag of the event loop: the additional time that everything in it waits.

Samples are due at fixed times. A blocked loop is therefore late for every sample that it missed, so that the
shares of the histogram are shares of time: a second of blocking counts as a second.

A timer takes each sample, not a task: waking a task costs several times as much, and an idle server does little else.
"""

import asyncio

import anyio

from service.telemetry.metrics import EVENT_LOOP_LAG_SECONDS

EVERY_SECONDS = 0.05
MOST_SECONDS = 10.0
"""The longest blocking that is counted, so that a process stopped for hours need not catch up on all samples."""


async def watch_lag() -> None:
    """Observe the lag of this event loop forever; the resolution of timers adds up to a millisecond."""
    loop = asyncio.get_running_loop()
    timer: asyncio.TimerHandle | None = None

    def expect(due: float) -> None:
        nonlocal timer
        timer = loop.call_at(due, sample, due)

    def sample(due: float) -> None:
        now = loop.time()
        EVENT_LOOP_LAG_SECONDS.observe(max(0.0, now - due))
        expect(max(due, now - MOST_SECONDS) + EVERY_SECONDS)

    expect(loop.time() + EVERY_SECONDS)
    try:
        await anyio.sleep_forever()
    finally:
        if timer is not None:
            timer.cancel()
