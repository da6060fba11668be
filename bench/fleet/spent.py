"""CPU that processes have used, with all that they have started."""

from typing import NamedTuple

import psutil


class Spent(NamedTuple):
    """Seconds of CPU: of one process, and of all those below it, ended ones included."""

    own: float
    below: float

    @property
    def all(self) -> float:
        """Both."""
        return self.own + self.below


def spent(pid: int) -> Spent:
    """What a process and those below it have used so far."""
    top = psutil.Process(pid)
    below = 0.0
    for one in (top, *top.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.Error:
            continue
        below += times.children_user + times.children_system + (times.user + times.system if one != top else 0.0)
    times = top.cpu_times()
    return Spent(times.user + times.system, below)
