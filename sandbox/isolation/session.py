"""A separate session and process group, at low priority, so that ending the group ends the run."""

import os

from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import plain_steps
from sandbox.report import Guard

_NICE = 10


class OwnSession:
    """A session without a terminal."""

    name = "own session"
    stops = "reaching a terminal; escaping when its group is killed"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        os.setsid()

    def steps(self, jail: Jail) -> bytes:  # noqa: ARG002 - the protocol's
        """Lead a new session."""
        # A service at a still lower priority may not raise that of its children.
        nice = max(_NICE, os.getpriority(os.PRIO_PROCESS, 0))
        return plain_steps(self.name, ("setsid",), ("setpriority", os.PRIO_PROCESS, 0, nice))
