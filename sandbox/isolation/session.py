"""A separate session and process group, at low priority, so that ending the group ends the run."""

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
        # A service at a still lower priority may not raise that of its children.
        steps.call("setpriority", os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
        return steps.packed()
