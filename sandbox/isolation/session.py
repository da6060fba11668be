"""Its own session and process group, at low priority, so that ending the group ends the run."""

import os

from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps
from sandbox.report import Guard

_NICE = 10


class OwnSession:
    """A session without a terminal."""

    name = "own session"
    stops = "reaching a terminal, being missed by the kill of its group"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        os.setsid()

    def steps(self, jail: Jail) -> bytes:  # noqa: ARG002 - the protocol's
        """Lead a new session."""
        steps = Steps(self.name)
        steps.call("setsid")
        # A service that is nicer itself may not raise what it starts.
        steps.call("setpriority", os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        return steps.packed()
