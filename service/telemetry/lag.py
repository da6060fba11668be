"""How late the event loop is: what everything that waits in it waits besides, a probe of health and a poll alike.

Times of looking lie on a grid. A loop that was held up is therefore late at each time that it missed, so that the
shares of the histogram are shares of time: one second without a turn counts as much as it lasted.
"""

import anyio

from service.telemetry.metrics import EVENT_LOOP_LAG_SECONDS

EVERY_SECONDS = 0.05
MOST_SECONDS = 10.0
"""How much of a time without any turn is counted: a process that was stopped for hours need not make up for all."""


async def watch_lag() -> None:
    """Observe for ever how late this event loop is; a timer's own grain adds up to a millisecond."""
    due = anyio.current_time()
    while True:
        due = max(due, anyio.current_time() - MOST_SECONDS) + EVERY_SECONDS
        await anyio.sleep_until(due)
        EVENT_LOOP_LAG_SECONDS.observe(max(0.0, anyio.current_time() - due))
