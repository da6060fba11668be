"""Removes the rights that a run must not have or gain."""

import errno
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps, plain_steps, take
from sandbox.report import Guard

_VERSION_3: Final = 0x20080522
_SETGID: Final = 6
_SETUID: Final = 7
_MOST: Final = 64


def capability_sets(kept: Iterable[int]) -> tuple[bytes, bytes]:
    """The arguments of `capset`: its version, and the capabilities `kept` as effective and permitted."""
    low = sum(1 << number for number in kept)
    # Effective, permitted, inheritable: first for numbers below 32, then for the rest.
    return struct.pack("=Ii", _VERSION_3, 0), struct.pack("=6I", low, low, 0, 0, 0, 0)


def known_capabilities() -> int:
    """How many capabilities this kernel has."""
    for number in range(_MOST):
        try:
            syscalls.prctl(syscalls.PR_CAPBSET_READ, number)
        except OSError:
            return number
    return _MOST


class NoCapabilities:
    """Drops all capabilities except those that the change of user needs and then drops."""

    name = "no capabilities"
    stops = "privileged operations of root, or of root of a namespace"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        take(_keep_only(self.name, ()))

    def steps(self, jail: Jail) -> bytes:
        """Drop them permanently."""
        return _keep_only(self.name, () if jail.user is None else (_SETGID, _SETUID))


@lru_cache
def _keep_only(layer: str, kept: tuple[int, ...]) -> bytes:
    steps = Steps(layer)
    for number in range(known_capabilities()):
        # Without the right to drop them, no-new-privileges already ensures that nothing can be gained.
        steps.call("prctl", syscalls.PR_CAPBSET_DROP, number, tolerated=errno.EPERM)
    steps.call("capset", *capability_sets(kept))
    return steps.packed()


class NoNewPrivileges:
    """Makes set-uid bits and file capabilities ineffective."""

    name = "no new privileges"
    stops = "gaining rights through set-uid programs"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)

    def steps(self, jail: Jail) -> bytes:  # noqa: ARG002 - the protocol's
        """Do it."""
        return plain_steps(self.name, ("prctl", syscalls.PR_SET_NO_NEW_PRIVS, 1))
