"""A run ends when its spawner does."""

import signal

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps
from sandbox.report import Guard


class ParentDeath:
    """SIGKILL when the parent is gone. Entered after any change of user, which clears it."""

    name = "dies with its parent"
    stops = "running on after the service has been killed"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)

    def steps(self, jail: Jail) -> bytes:
        """Ask for the signal, and notice a parent that went before."""
        steps = Steps(self.name)
        steps.call("prctl", syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        steps.call("getppid", expected=jail.spawner)
        return steps.packed()
