"""Rights that a run must not have: capabilities, and gaining any."""

import errno
import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps, take
from sandbox.report import Guard

_VERSION_3: Final = 0x20080522
_SETGID: Final = 6
_SETUID: Final = 7
_MOST: Final = 64


def keep(kept: Iterable[int], *, bounding: Iterable[int]) -> bytes:
    """The steps by which a process has the capabilities `kept`, and no program gives it any but those of `bounding`."""
    steps = Steps(NoCapabilities.name)
    for number in set(range(known_capabilities())).difference(bounding):
        # Without the right to drop it there is nothing in it that could be gained after no-new-privileges.
        steps.call("prctl", syscalls.PR_CAPBSET_DROP, number, tolerated=errno.EPERM)
    low = sum(1 << number for number in kept)
    # Effective, permitted, inheritable: for numbers below 32, then for those above.
    steps.call("capset", struct.pack("=Ii", _VERSION_3, 0), struct.pack("=6I", low, low, 0, 0, 0, 0))
    return steps.packed()


def known_capabilities() -> int:
    """How many capabilities this kernel has."""
    for number in range(_MOST):
        try:
            syscalls.prctl(syscalls.PR_CAPBSET_READ, number)
        except OSError:
            return number
    return _MOST


class NoCapabilities:
    """All capabilities are dropped, but for those that the change of user needs and takes away."""

    name = "no capabilities"
    stops = "whatever root, or root of a namespace, may do"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        take(keep((), bounding=()))

    def steps(self, jail: Jail) -> bytes:
        """Drop them, for good."""
        return _keep_only(() if jail.user is None else (_SETGID, _SETUID))


@lru_cache
def _keep_only(kept: tuple[int, ...]) -> bytes:
    return keep(kept, bounding=())


class NoNewPrivileges:
    """Set-uid programs and file capabilities give nothing."""

    name = "no new privileges"
    stops = "gaining rights through set-uid programs"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)

    def steps(self, jail: Jail) -> bytes:  # noqa: ARG002 - the protocol's
        """Do it."""
        steps = Steps(self.name)
        steps.call("prctl", syscalls.PR_SET_NO_NEW_PRIVS, 1)
        return steps.packed()
