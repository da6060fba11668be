"""The system-call filter: a list of calls that a converter needs, and nothing else of the kernel.

The filter is a program of the kernel's classic BPF machine, made once and given to every run. It refuses sockets, new
processes, mounts, namespaces, tracing and signals to others, so it also covers the network where there is no namespace.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from sandbox import syscalls
from sandbox.jail import Jail
from sandbox.layers.system_calls import ALLOWED, FIRST_SHARED
from sandbox.report import Guard

_AUDIT_ARCH: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "x86_64": (0xC000003E, 1),
        "aarch64": (0xC00000B7, 2),
    }
)
_X32_BIT: Final = 0x40000000

_LOAD: Final = 0x20
_EQUAL: Final = 0x15
_GREATER: Final = 0x25
_AT_LEAST: Final = 0x35
_HAS_BITS: Final = 0x45
_RETURN: Final = 0x06

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL: Final = 0x80000000

_OFFSET_NUMBER: Final = 0
_OFFSET_ARCH: Final = 4
_OFFSET_ARGUMENTS: Final = 16

_CLONE_THREAD: Final = 0x00010000
_OWN_PID: Final = 0x7FFFFFF0
"""Stands for the process id of whoever enters; `for_process` replaces it."""

# (argument, values): the call is allowed when its argument is one of these, None stands for the own process id.
_ONLY: Final[Mapping[str, tuple[int, tuple[int, ...]]]] = MappingProxyType(
    {
        "tgkill": (0, (_OWN_PID,)),
        "prlimit64": (0, (0,)),
        "prctl": (0, (15, 16, 3, 0x53564D41)),  # thread names, is-dumpable, names of memory
        "ioctl": (1, (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)),  # is-a-terminal, its size, flags of descriptors
    }
)
# Signals from descriptors reach other processes.
_NOT: Final[Mapping[str, tuple[int, tuple[int, ...]]]] = MappingProxyType({"fcntl": (1, (8, 10, 15))})

_Instruction = tuple[int, int, int, int]


def _refuse(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | number)


def _numbers(machine: str) -> dict[str, int]:
    column = _AUDIT_ARCH[machine][1]
    return {row[0]: number for row in ALLOWED if isinstance(number := row[column], int)}


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def _allow_ranges(numbers: Sequence[int]) -> Iterator[_Instruction]:
    for first, last in _ranges(sorted(numbers)):
        yield (_GREATER, 2, 0, last)
        yield (_AT_LEAST, 0, 1, first)
        yield (_RETURN, 0, 0, _ALLOW)


def _if_call(number: int, then: Sequence[_Instruction]) -> Iterator[_Instruction]:
    yield (_EQUAL, 0, len(then), number)
    yield from then


def _if_argument(argument: int, values: Sequence[int], *, allowed: bool) -> list[_Instruction]:
    hit, miss = (_RETURN, 0, 0, _ALLOW), _refuse(errno.EPERM)
    if not allowed:
        hit, miss = miss, hit
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [(_LOAD, 0, 0, _OFFSET_ARGUMENTS + 8 * argument), *tests, miss, hit]


def _conditions(numbers: Mapping[str, int]) -> Iterator[_Instruction]:
    for table, allowed in ((_ONLY, True), (_NOT, False)):
        for name, (argument, values) in table.items():
            yield from _if_call(numbers[name], _if_argument(argument, values, allowed=allowed))
    threads_only = [
        (_LOAD, 0, 0, _OFFSET_ARGUMENTS),
        (_HAS_BITS, 0, 1, _CLONE_THREAD),
        (_RETURN, 0, 0, _ALLOW),
        _refuse(errno.EPERM),
    ]
    yield from _if_call(numbers["clone"], threads_only)


@cache
def program(machine: str, *, executes: bool) -> bytes:
    """The filter; `executes` says whether its process still has to become another program.

    Raises:
        OSError: the calls of this machine are not known.
    """
    if machine not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"the system calls of {machine} are not known")
    numbers = _numbers(machine)
    conditional = {*_ONLY, *_NOT, "clone", "clone3", *(() if executes else ("execve",))}
    free = [number for name, number in numbers.items() if name not in conditional]
    instructions = [
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_EQUAL, 1, 0, _AUDIT_ARCH[machine][0]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        (_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
        *_allow_ranges(free),
        *_conditions(numbers),
        (_AT_LEAST, 0, 1, FIRST_SHARED),
        _refuse(errno.ENOSYS),
        _refuse(errno.EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def for_this_machine(*, executes: bool) -> bytes:
    """The filter for the machine that this runs on.

    Raises:
        OSError: the calls of this machine are not known.
    """
    return program(platform.machine(), executes=executes)


def for_process(filter_program: bytes, pid: int) -> bytes:
    """The filter for one process: it may signal itself alone."""
    return filter_program.replace(struct.pack("=I", _OWN_PID), struct.pack("=I", pid))


def pid_offset(filter_program: bytes) -> int:
    """Where `for_process` puts the process id."""
    return filter_program.index(struct.pack("=I", _OWN_PID))


class SystemCallFilter:
    """Seccomp with a list of what is allowed. Entered last: it forbids what the other layers do."""

    name = "system-call filter"
    stops = "sockets, new processes, tracing, mounts, links, most of the kernel"
    guards = frozenset({Guard.NETWORK})

    def probe(self) -> None:
        """See that a socket is refused."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        self._filter()
        try:
            socket.socket().close()
        except PermissionError:
            return
        raise OSError("a socket could be opened")

    def enter(self, jail: Jail) -> None:  # noqa: ARG002
        """Filter all further calls of this process."""
        self._filter()

    def _filter(self) -> None:
        code = for_process(for_this_machine(executes=True), os.getpid())
        buffer = ctypes.create_string_buffer(code, len(code))
        header = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer)))
        syscalls.prctl(syscalls.PR_SET_SECCOMP, 2, ctypes.addressof(header))
