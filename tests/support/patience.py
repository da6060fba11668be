"""How long a test waits for an event that must come: on a busy host it may take minutes, and time proves nothing."""

import time
from collections.abc import Iterator

PATIENCE_SECONDS = 200.0
"""Less than a test may take, so that the test can say what did not come."""
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1


def looks(seconds: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Yield each time that a test is to look for an event: often at first, then seldom, because looks take cores too.

    The last look is after `seconds`.
    """
    give_up_at = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while time.monotonic() < give_up_at:
        yield
        time.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_PAUSE_SECONDS)
    yield
