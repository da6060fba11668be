"""No privilege is gained from here on."""

from sandbox import syscalls
from sandbox.jail import Jail
from sandbox.report import Guard


class NoNewPrivileges:
    """set-uid programs and file capabilities give nothing."""

    name = "no new privileges"
    stops = "gaining rights through set-uid programs"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)

    def enter(self, jail: Jail) -> None:  # noqa: ARG002
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
