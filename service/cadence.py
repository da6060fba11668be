"""The times of a process's periodic work: all of it is due at multiples of its interval since one moment.

So the process wakes up once for everything that is due then; with pauses of their own, tasks would drift apart, and an
idle process would wake up for each of them.
"""

import time
from datetime import timedelta
from math import floor
from typing import Final

import anyio

_ZERO: Final = time.monotonic()


async def until_next(every: timedelta) -> None:
    """Wait until work that is due at this interval is due again; what was missed meanwhile is not caught up on."""
    seconds = every.total_seconds()
    await anyio.sleep_until(_ZERO + (floor((anyio.current_time() - _ZERO) / seconds) + 1) * seconds)
