"""Namespaces: an unconnected network, and no view of the host's processes, mounts and IPC objects.

They are created once: the spawner lives in them together with all runs. It is process 1 of its PID namespace, so every
other process there ends when it does, even one that has escaped its group.
"""

import ctypes
import os
import signal
from collections.abc import Sequence
from typing import Final

from sandbox import syscalls

NAME: Final = "namespaces"
STOPS: Final = "access to the network, other processes, the host's mounts; surviving a killed service"
ROOT_NAME: Final = "minimal root"
ROOT_STOPS: Final = "seeing any file except libraries, programs and their data"

_CLONE: Final = {"x86_64": 56, "aarch64": 220}
NEW_USER: Final = 0x10000000
_NEW_OTHERS: Final = (
    0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
)  # mounts, processes, network, ipc, uts

# The first combination that works is used. Root of a new user namespace has no rights outside it.
WAYS: Final[Sequence[tuple[str, int]]] = (("with a user namespace", NEW_USER | _NEW_OTHERS), ("as root", _NEW_OTHERS))


def fork_into(flags: int) -> int:
    """Fork into new namespaces; returns the child's id, or 0 in the child, which is process 1 of its namespace.

    Raises:
        OSError: the kernel refuses one of them.
    """
    machine = os.uname().machine
    if machine not in _CLONE:
        raise OSError(f"the system calls of {machine} are not known")
    python = ctypes.pythonapi
    python.PyOS_BeforeFork()
    try:
        pid = syscalls.call(_CLONE[machine], flags | signal.SIGCHLD, 0, 0, 0, 0)
    except OSError:
        python.PyOS_AfterFork_Parent()
        raise
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    return pid


def map_users(pid: int, slot_users: range) -> None:
    """Map the users of the user namespace of `pid`: this user as root, and the slots' users if this user is root.

    Raises:
        OSError: the kernel refuses the mapping.
    """
    if os.geteuid() == 0:
        users = groups = f"0 0 1\n{slot_users.start} {slot_users.start} {len(slot_users)}\n"
    else:
        _write(f"/proc/{pid}/setgroups", "deny")
        users, groups = f"0 {os.geteuid()} 1\n", f"0 {os.getegid()} 1\n"
    _write(f"/proc/{pid}/uid_map", users)
    _write(f"/proc/{pid}/gid_map", groups)


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
