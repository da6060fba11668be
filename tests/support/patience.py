"""How long a test waits for an event that must come: on a busy host it may take minutes, and time proves nothing."""

import time
from collections.abc import Callable, Iterator

import anyio

PATIENCE_SECONDS = 200.0
"""Less than a test may take, so that the test can say what did not come."""
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1


def polls(seconds: float = PATIENCE_SECONDS, longest_pause: float = _LONGEST_PAUSE_SECONDS) -> Iterator[None]:
    """Yield each time that a test is to check for an event: often at first, then seldom, because checks take cores too.

    The last check is after `seconds`.
    """
    give_up_at = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    while time.monotonic() < give_up_at:
        yield
        time.sleep(pause)
        pause = min(pause * 1.3, longest_pause)
    yield


def wait_until(holds: Callable[[], object], longest_pause: float = _LONGEST_PAUSE_SECONDS) -> None:
    """Look until something holds, with pauses of up to `longest_pause` seconds; the test fails if it never does."""
    assert any(holds() for _ in polls(longest_pause=longest_pause)), "it never came to that"


async def until(holds: Callable[[], object]) -> None:
    """Wait in an event loop until something holds that nothing announces, such as what another process does."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 -- nothing announces it
            await anyio.sleep(0.01)
