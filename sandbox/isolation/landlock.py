"""Landlock: limits the files that a run can open, and stops TCP, abstract sockets and signals to other processes.

Works without privileges on Linux 5.13 and later. The spawner makes the rules of a run and passes a descriptor; entering
them takes one call.
"""

import ctypes
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from stat import S_ISDIR
from typing import Final

from sandbox import syscalls
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Argument, descriptor, plain_steps, take
from sandbox.report import Guard

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_REMOVE_DIR: Final = 1 << 4
_REMOVE_FILE: Final = 1 << 5
_MAKE_DIR: Final = 1 << 7
_MAKE_REG: Final = 1 << 8
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_ALL_BY_VERSION: Final = (0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1, (1 << 16) - 1)

_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
READ: Final = _READ_FILE | _READ_DIR
EXECUTE: Final = _EXECUTE | _READ_FILE
DEVICE: Final = _READ_FILE | _WRITE_FILE
# A run cannot create links, sockets, pipes or devices, nor execute anything that it wrote.
OWN: Final = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE

_add_rule: Final = syscalls.typed(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)

_TCP_SINCE: Final = 4
_SCOPES_SINCE: Final = 6


@cache
def version() -> int:
    """The kernel's version of Landlock.

    Raises:
        OSError: the kernel has no Landlock.
    """
    return syscalls.call(_CREATE_RULESET, None, 0, _VERSION_FLAG)


@cache
def _handled() -> tuple[int, int, int]:
    found = version()
    files = _ALL_BY_VERSION[min(found, len(_ALL_BY_VERSION) - 1)]
    return files, 3 if found >= _TCP_SINCE else 0, 3 if found >= _SCOPES_SINCE else 0


class Rule:
    """A path, held open, and the access allowed below it."""

    def __init__(self, path: str | Path, access: int) -> None:
        self._descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        self._allowed = access if S_ISDIR(os.fstat(self._descriptor).st_mode) else access & _OF_FILES

    @cached_property
    def _attributes(self) -> bytes:
        # Packed once, because every run adds all rules again; and not before, because the kernel may have no Landlock.
        return struct.pack("=Qi", self._allowed & _handled()[0], self._descriptor)

    def add_to(self, ruleset: int) -> None:
        """Add the rule to a ruleset."""
        _add_rule(_ADD_RULE, ruleset, _PATH_BENEATH, self._attributes, 0)

    def close(self) -> None:
        """Close the path."""
        os.close(self._descriptor)


def ruleset(rules: Iterable[Rule]) -> int:
    """A ruleset's descriptor; access that no rule allows is denied."""
    attributes = struct.pack("=QQQ", *_handled())
    made = syscalls.call(_CREATE_RULESET, attributes, len(attributes), 0)
    for rule in rules:
        rule.add_to(made)
    return made


class Landlock:
    """Allows a run to open only what its program reads, and the run's own directory."""

    name = "Landlock"
    stops = "reading and writing other files, executing other programs, TCP, abstract sockets"
    guards = frozenset({Guard.FILES})

    def __init__(self, by_program: Mapping[str, Sequence[Rule]], others: Sequence[Rule]) -> None:
        self._by_program = by_program
        self._others = others

    def probe(self) -> None:
        """Check that a file outside cannot be opened."""
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        take(self._entering(descriptor(0)), [ruleset(())])
        try:
            os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
        except PermissionError:
            return
        raise OSError("a file outside could be opened")

    def rules(self, program: str, directory: str) -> int:
        """The ruleset of one run of `program`, an absolute path, as a descriptor."""
        own = Rule(directory, OWN)
        try:
            return ruleset((*self._by_program.get(program, self._others), own))
        finally:
            own.close()

    def steps(self, jail: Jail) -> bytes:
        """Enter the run's ruleset."""
        return self._entering(jail.as_argument(jail.ruleset))

    def _entering(self, rules: Argument) -> bytes:
        return plain_steps(self.name, ("landlock_restrict_self", rules, 0))
