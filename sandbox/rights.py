"""Permanently drops rights that a process of the service no longer needs."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from sandbox import syscalls
from sandbox.isolation.privileges import capability_sets, known_capabilities

CHOWN: Final = 0
DAC_OVERRIDE: Final = 1
FOWNER: Final = 3
KILL: Final = 5
SETGID: Final = 6
SETUID: Final = 7
SETPCAP: Final = 8
SYS_PTRACE: Final = 19
SYS_ADMIN: Final = 21
SETFCAP: Final = 31


def keep_only(wanted: Iterable[int] = ()) -> None:
    """Drop all capabilities except `wanted`; neither this process nor its children can gain others.

    Call it while the process has one thread: existing threads keep their capabilities. Other processes of the same user
    can no longer inspect this one.

    Raises:
        OSError: the kernel refuses.
    """
    had = _permitted()
    kept = [number for number in wanted if had >> number & 1]
    with suppress(PermissionError):  # without the right to drop them, none can be gained
        for number in set(range(known_capabilities())).difference(kept):
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, number)
    syscalls.named("capset", *capability_sets(kept))
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)


def _permitted() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("CapPrm:")).split()[1], 16)
