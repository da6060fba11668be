"""The system-call filter as a program, interpreted here as the kernel does."""

import errno
import os
import struct

import pytest

from sandbox.isolation.seccomp import pid_offset, program
from sandbox.isolation.system_calls import ALLOWED, FIRST_SHARED

ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSED, UNKNOWN = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
NO_THREAD, NO_ROOM_AHEAD = 0x50000 | errno.EAGAIN, 0x50000 | errno.EOPNOTSUPP
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 1, "aarch64": 2}
OWN_PID = 4711
TEMPORARY = 0o20000000  # O_TMPFILE without O_DIRECTORY, which differs between machines


def answer(machine: str, number: int, *arguments: int, executes: bool = True, architecture: int | None = None) -> int:
    """What the filter returns for one call."""
    data = struct.pack("=IIQ6Q", number, architecture or MACHINES[machine], 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code = list(struct.iter_unpack("=HBBI", for_own_process(program(machine, executes=executes))))
    place = accumulator = 0
    while True:
        kind, if_true, if_false, value = code[place]
        place += 1
        match kind:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x06:
                return int(value)
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x35:
                place += if_true if accumulator >= value else if_false
            case 0x45:
                place += if_true if accumulator & value else if_false
            case _:
                raise AssertionError(kind)


def for_own_process(code: bytes) -> bytes:
    """The filter with the id of the process that installs it."""
    offset = pid_offset(code)
    return code[:offset] + struct.pack("=I", OWN_PID) + code[offset + 4 :]


def number_of(machine: str, name: str) -> int:
    """The number of a call."""
    number = next(row for row in ALLOWED if row[0] == name)[COLUMN[machine]]
    assert isinstance(number, int)
    return number


CONDITIONAL = {
    "tgkill",
    "prlimit64",
    "prctl",
    "ioctl",
    "fcntl",
    "clone",
    "clone3",
    "execve",
    "openat",
    "mkdirat",
    "fallocate",
}


@pytest.mark.parametrize("machine", MACHINES)
def test_exactly_the_listed_calls_are_allowed(machine: str) -> None:
    """Every number up to a thousand: allowed if it is in the table, otherwise refused or unknown."""
    free = {row[COLUMN[machine]] for row in ALLOWED if row[0] not in CONDITIONAL}
    conditional = {number_of(machine, name) for name in CONDITIONAL}
    for number in set(range(1000)) - conditional:
        expected = ALLOW if number in free else REFUSED if number < FIRST_SHARED else UNKNOWN
        assert answer(machine, number) == expected, number


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (0x00010000 | 0x100,), NO_THREAD),
        ("clone", (17,), NO_THREAD),
        ("fallocate", (3, 0, 0, 1), NO_ROOM_AHEAD),
        ("fallocate", (3, 1, 0, 1), NO_ROOM_AHEAD),
        ("clone3", (0,), UNKNOWN),
        ("tgkill", (OWN_PID, 1, 6), ALLOW),
        ("tgkill", (1, 1, 9), REFUSED),
        ("prlimit64", (0, 9), ALLOW),
        ("prlimit64", (1, 9), REFUSED),
        ("prctl", (15,), ALLOW),
        ("prctl", (22,), REFUSED),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x5412), REFUSED),
        ("fcntl", (0, 3), ALLOW),
        ("fcntl", (0, 8), REFUSED),
        ("fcntl", (0, 10), REFUSED),
        ("fcntl", (0, 6), ALLOW),
        ("fcntl", (0, 1024), REFUSED),
        ("fcntl", (0, 1026), REFUSED),
        ("fcntl", (0, 1030), ALLOW),
        ("fcntl", (0, 1031), REFUSED),
        ("openat", (0, 0, 0), ALLOW),
        ("openat", (0, 0, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o777), ALLOW),
        ("openat", (0, 0, os.O_WRONLY | os.O_CREAT, 0o4755), REFUSED),
        ("openat", (0, 0, os.O_RDWR | TEMPORARY, 0o2755), REFUSED),
        ("openat", (0, 0, os.O_RDWR, 0o7777), ALLOW),
        ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC), REFUSED),
        ("openat", (0, 0, os.O_RDONLY | os.O_TRUNC | os.O_CREAT, 0o644), REFUSED),
        ("openat", (0, 0, os.O_RDONLY | os.O_CREAT, 0o644), ALLOW),
        ("mkdirat", (0, 0, 0o755), ALLOW),
        ("mkdirat", (0, 0, 0o1755), REFUSED),
        ("execve", (), ALLOW),
    ],
)
def test_some_calls_are_allowed_for_some_arguments(
    machine: str, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    """No threads or processes, signals only to itself, no limits of other processes."""
    assert answer(machine, number_of(machine, name), *arguments) == expected


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("open", (0, os.O_WRONLY | os.O_CREAT, 0o644), ALLOW),
        ("open", (0, os.O_WRONLY | os.O_CREAT, 0o1644), REFUSED),
        ("open", (0, os.O_RDONLY | os.O_TRUNC), REFUSED),
        ("creat", (0, 0o644), ALLOW),
        ("creat", (0, 0o4644), REFUSED),
        ("mkdir", (0, 0o700), ALLOW),
        ("mkdir", (0, 0o2700), REFUSED),
    ],
)
def test_older_calls_are_judged_alike(name: str, arguments: tuple[int, ...], expected: int) -> None:
    """Calls that only some architectures have."""
    assert answer("x86_64", number_of("x86_64", name), *arguments) == expected


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_that_is_its_program_already_executes_no_other(machine: str) -> None:
    """A fork server's children execute nothing."""
    assert answer(machine, number_of(machine, "execve"), executes=False) == REFUSED


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_kill(machine: str) -> None:
    """The numbers of 32-bit programs mean other calls."""
    assert answer(machine, 0, architecture=0x40000003) == KILL
    assert answer(machine, 0x40000000 | 39) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_the_process_id_has_one_place(machine: str) -> None:
    """The process that installs the filter inserts its own id there."""
    code = program(machine, executes=False)
    stands_for_it = code[pid_offset(code) :][:4]
    assert code.count(stands_for_it) == 1
