"""The lag of the event loop: the additional time that everything in it waits.

Samples are due at fixed times. A blocked loop is therefore late for every sample that it missed, so that the
shares of the histogram are shares of time: a second of blocking counts as a second.
"""

import anyio

from service.telemetry.metrics import EVENT_LOOP_LAG_SECONDS

EVERY_SECONDS = 0.05
MOST_SECONDS = 10.0
"""The longest blocking that is counted, so that a process stopped for hours need not catch up on all samples."""


async def watch_lag() -> None:
    """Observe the lag of this event loop forever; the resolution of timers adds up to a millisecond."""
    due = anyio.current_time()
    while True:
        due = max(due, anyio.current_time() - MOST_SECONDS) + EVERY_SECONDS
        await anyio.sleep_until(due)
        EVENT_LOOP_LAG_SECONDS.observe(max(0.0, anyio.current_time() - due))
