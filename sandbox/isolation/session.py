"""Its own session and process group, at low priority, so that ending the group ends the run."""

import os

from sandbox.isolation.jail import Jail
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

    def enter(self, jail: Jail) -> None:  # noqa: ARG002 - the protocol's
        """Lead a new session."""
        os.setsid()
        if os.getpriority(os.PRIO_PROCESS, 0) < _NICE:  # a service that is nicer itself may not raise what it starts
            os.setpriority(os.PRIO_PROCESS, 0, _NICE)
