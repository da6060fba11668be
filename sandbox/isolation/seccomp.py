"""The system-call filter: allows the calls that a converter needs, and no others.

The filter is a classic BPF program, compiled once and installed in every run. It denies sockets, new processes, mounts,
namespaces, tracing and signals to others, so it also covers the network if there is no namespace. It also denies what
would persist on a file: open-file-description locks, leases, and set-uid, set-gid and sticky bits.
"""

import errno
import platform
import socket
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps, take
from sandbox.isolation.system_calls import ALLOWED, COLUMNS, FIRST_SHARED
from sandbox.report import Guard

_AUDIT_ARCH: Final[Mapping[str, int]] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT: Final = 0x40000000

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_HAS_BITS: Final = 0x45
_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL: Final = 0x80000000

_OFFSET_NUMBER: Final = 0
_OFFSET_ARCH: Final = 4
_OFFSET_ARGUMENTS: Final = 16

_SPECIAL_BITS: Final = 0o7000
_WRITES: Final = 0o3
_CUTS_OFF: Final = 0o1000
_MAKES: Final = 0o100 | 0o20000000  # O_CREAT, or O_TMPFILE
_OWN_PID: Final = 0x7FFFFFF0
"""Placeholder for the process id of the process that installs the filter."""
_PID_BYTES: Final = 4
_ADDRESS_OFFSET: Final = 8
_ADDRESS_BYTES: Final = 8
_FILTER_MODE: Final = 2

# (argument, values): the call is allowed if its argument is one of these; None stands for the process's own id.
_ONLY: Final[Mapping[str, tuple[int, tuple[int, ...]]]] = {
    "tgkill": (0, (_OWN_PID,)),
    "prlimit64": (0, (0,)),
    "prctl": (0, (15, 16, 3, 0x53564D41)),  # thread names, is-dumpable, names of memory
    "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # is-a-terminal, its size, flags of descriptors
    "fcntl": (1, (0, 1030, 1, 2, 3, 4, 5, 6, 7)),  # copies and flags of descriptors, locks of a process's own
}
# Calls that create something, and their mode argument: set-uid, set-gid and sticky bits are denied.
_MODES: Final[Mapping[str, int]] = {"creat": 1, "mkdir": 1, "mkdirat": 2}
# Calls that open a file, and their flags argument, which precedes the mode.
_FLAGS: Final[Mapping[str, int]] = {"open": 1, "openat": 2}
# Denied with errors that libraries handle. Threads, because a run has only one. Preallocation, because it could fill
# the disk between two quota checks.
_LACKING: Final[Mapping[str, int]] = {"clone": errno.EAGAIN, "clone3": errno.ENOSYS, "fallocate": errno.EOPNOTSUPP}

_Instruction = tuple[int, int, int, int]
_Code = tuple[_Instruction, ...]


def _refuse(number: int) -> _Code:
    return ((_RETURN, 0, 0, _ERRNO | number),)


_ALLOWED: Final[_Code] = ((_RETURN, 0, 0, _ALLOW),)
_REFUSED: Final[_Code] = _refuse(errno.EPERM)
_UNKNOWN: Final[_Code] = _refuse(errno.ENOSYS)


def _argument(place: int) -> _Instruction:
    return (_LOAD, 0, 0, _OFFSET_ARGUMENTS + 8 * place)


def _by_argument(argument: int, values: Sequence[int], listed: _Code, others: _Code) -> _Code:
    tests = ((_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values))
    return (_argument(argument), *tests, *others, *listed)


def _with_plain_mode(mode: int) -> _Code:
    return (_argument(mode), (_HAS_BITS, 1, 0, _SPECIAL_BITS), *_ALLOWED, *_REFUSED)


def _opening(flags: int) -> _Code:
    """Allow opening files, but not truncating one without write access, which Landlock denies only since Linux 6.2."""
    makes = _with_plain_mode(flags + 1)
    return (
        _argument(flags),
        (_HAS_BITS, 1, 0, _WRITES),
        (_HAS_BITS, len(makes), 0, _CUTS_OFF),
        (_HAS_BITS, 0, len(makes) - 2, _MAKES),
        *makes,
    )


def _answers(numbers: Mapping[str, int], *, executes: bool) -> dict[int, _Code]:
    """The code for each call that is not simply denied."""
    answers = {number: _ALLOWED for name, number in numbers.items() if executes or name != "execve"}
    answers |= {numbers[name]: _by_argument(*test, _ALLOWED, _REFUSED) for name, test in _ONLY.items()}
    answers |= {numbers[name]: _with_plain_mode(mode) for name, mode in _MODES.items() if name in numbers}
    answers |= {numbers[name]: _opening(flags) for name, flags in _FLAGS.items() if name in numbers}
    return answers | {numbers[name]: _refuse(number) for name, number in _LACKING.items()}


def _ranges(answers: Mapping[int, _Code]) -> list[tuple[int, _Code]]:
    """The same for all call numbers: the first number of each range with the same code."""
    ranges: list[tuple[int, _Code]] = []
    for number in sorted({0, FIRST_SHARED, *answers, *(number + 1 for number in answers)}):
        answer = answers.get(number, _REFUSED if number < FIRST_SHARED else _UNKNOWN)
        if not ranges or ranges[-1][1] != answer:
            ranges.append((number, answer))
    return ranges


def _search(ranges: Sequence[tuple[int, _Code]]) -> _Code:
    """A binary search for the call's range: the kernel runs the filter for every number when it is installed."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below = _search(ranges[:middle])
    return ((_AT_LEAST, len(below), 0, ranges[middle][0]), *below, *_search(ranges[middle:]))


def program(machine: str, *, executes: bool) -> bytes:
    """The filter; `executes` says whether its process still has to execute a program.

    Raises:
        OSError: the calls of this machine are not known.
    """
    if machine not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"the system calls of {machine} are not known")
    architecture, column = _AUDIT_ARCH[machine], COLUMNS[machine]
    numbers = {row[0]: number for row in ALLOWED if isinstance(number := row[column], int)}
    instructions = (
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
        *_search(_ranges(_answers(numbers, executes=executes))),
    )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def pid_offset(filter_program: bytes) -> int:
    """The offset of the installing process's id in the filter: a run may signal only itself."""
    return filter_program.index(struct.pack("=I", _OWN_PID))


class SystemCallFilter:
    """Seccomp with a list of allowed calls. Entered last because it forbids what the other layers do."""

    name = "system-call filter"
    stops = "sockets, new processes and threads, tracing, mounts, links, most of the kernel"
    guards = frozenset({Guard.NETWORK, Guard.RUNS})

    def probe(self) -> None:
        """Check that a socket cannot be opened."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        take(_steps(self.name, executes=True))
        try:
            socket.socket().close()
        except PermissionError:
            return
        raise OSError("a socket could be opened")

    def steps(self, jail: Jail) -> bytes:
        """Install the filter."""
        return _steps(self.name, executes=jail.executes)


@lru_cache
def _steps(layer: str, *, executes: bool) -> bytes:
    code = program(platform.machine(), executes=executes)
    steps = Steps(layer)
    instructions = steps.data(code)
    own_pid = steps.call("getpid")
    steps.store(instructions, pid_offset(code), own_pid, _PID_BYTES)
    # The kernel's `struct sock_fprog`: the number of instructions, and their address.
    header = steps.data(struct.pack("=H6xQ", len(code) // 8, 0))
    steps.store(header, _ADDRESS_OFFSET, instructions, _ADDRESS_BYTES)
    steps.call("prctl", syscalls.PR_SET_SECCOMP, _FILTER_MODE, header)
    return steps.packed()
