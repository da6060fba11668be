"""Processes that a run left behind: needed only where no system-call filter keeps it from making any.

The spawner adopts every process below it whose parent has ended. So what a run leaves behind becomes a child of the
spawner, one generation after the other, and is none that it knows.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from sandbox.process.run import kill_group

_GENERATIONS = 1000
_WRAPPED = 1 << 16


def end_all(first: int, known: Callable[[int], bool]) -> None:
    """End every unknown child of this process with an id from `first` on, and theirs."""
    for _ in range(_GENERATIONS):
        found = [pid for pid in _since(first) if not known(pid) and _is_child(pid)]
        if not found:
            return
        for pid in found:
            kill_group(pid)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _since(first: int) -> range:
    """The ids that were given out since `first` was."""
    newest = os.fork()
    if newest == 0:
        os._exit(0)
    os.waitpid(newest, 0)
    # Ids start again from the bottom when they have come to the top.
    return range(first + 1, newest) if newest > first else range(2, min(newest, _WRAPPED))


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
