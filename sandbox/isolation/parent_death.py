"""A run ends when its spawner does."""

import signal
from functools import lru_cache

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps
from sandbox.report import Guard


class ParentDeath:
    """Sends SIGKILL when the parent ends. Entered after the change of user, which would clear it."""

    name = "dies with its parent"
    stops = "running on after the service has been killed"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Ask for the signal."""
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)

    def steps(self, jail: Jail) -> bytes:
        """Ask for the signal, and fail if the parent has already ended."""
        return _steps(self.name, jail.spawner)


@lru_cache
def _steps(layer: str, spawner: int) -> bytes:
    steps = Steps(layer)
    steps.call("prctl", syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    steps.call("getppid", expected=spawner)
    return steps.packed()
