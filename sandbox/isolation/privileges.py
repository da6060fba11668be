"""Rights that a run must not have: capabilities, and gaining any."""

import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.report import Guard

_VERSION_3: Final = 0x20080522
_SETGID: Final = 6
_SETUID: Final = 7
_MOST: Final = 64


def set_capabilities(*kept: int) -> None:
    """Have these capabilities and no other."""
    low = sum(1 << number for number in kept)
    header = struct.pack("=Ii", _VERSION_3, 0)
    # Effective, permitted, inheritable: for numbers below 32, then for those above.
    syscalls.named("capset", header, struct.pack("=6I", low, low, 0, 0, 0, 0))


def drop_bounding_set(dropped: Iterable[int]) -> None:
    """Make sure that no program gives one of these capabilities back."""
    # Without the right to drop it there is nothing in it that could be gained after no-new-privileges.
    with suppress(PermissionError):
        for number in dropped:
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, number)


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

    def __init__(self) -> None:
        self._known = range(known_capabilities())

    def probe(self) -> None:
        """Do it."""
        drop_bounding_set(self._known)
        set_capabilities()

    def enter(self, jail: Jail) -> None:
        """Drop them, for good."""
        drop_bounding_set(self._known)
        set_capabilities(*(() if jail.user is None else (_SETGID, _SETUID)))


class NoNewPrivileges:
    """Set-uid programs and file capabilities give nothing."""

    name = "no new privileges"
    stops = "gaining rights through set-uid programs"
    guards: frozenset[Guard] = frozenset()

    def probe(self) -> None:
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)

    def enter(self, jail: Jail) -> None:  # noqa: ARG002 - the protocol's
        """Do it."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
