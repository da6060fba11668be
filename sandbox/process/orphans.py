"""Ends processes that a run left behind; needed only if no system-call filter stops runs from forking.

The spawner adopts every descendant whose parent has ended. Processes that a run leaves behind therefore become unknown
children of the spawner, one generation after another.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from sandbox.process.run import kill_group

_GENERATIONS = 1000
_WRAPPED = 1 << 16


def end_all(first: int, known: Callable[[int], bool]) -> None:
    """End every unknown child of this process whose id was assigned after `first`, and its descendants."""
    for _ in range(_GENERATIONS):
        found = [pid for pid in _since(first) if not known(pid) and _is_child(pid)]
        if not found:
            return
        for pid in found:
            kill_group(pid)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _since(first: int) -> range:
    """The ids assigned since `first`."""
    newest = os.fork()
    if newest == 0:
        os._exit(0)
    os.waitpid(newest, 0)
    # Ids wrap around at their maximum.
    return range(first + 1, newest) if newest > first else range(2, min(newest, _WRAPPED))


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
