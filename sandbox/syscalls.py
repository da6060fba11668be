"""System calls that Python's library lacks; failures raise OSError."""

import ctypes
import os
from collections.abc import Callable
from typing import Final

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38


def check(result: int, what: str) -> int:
    """Return `result`, or raise OSError if it signals a failure."""
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, *values: int) -> int:
    """Change an attribute of this process."""
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return check(_libc.prctl(option, *padded), f"prctl {option}")


def call(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call that has the same number on every machine."""
    converted = [ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments]
    return check(_libc.syscall(ctypes.c_long(number), *converted), f"system call {number}")


def typed(*kinds: type) -> Callable[..., int]:
    """A system call with fixed C argument types: takes a third of the time, for calls made often.

    The returned function takes the call's number and then the arguments; it raises OSError as `call` does.
    """
    function = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, *kinds, use_errno=True)(("syscall", _libc))

    def make(number: int, *arguments: int | bytes) -> int:
        made: int = function(number, *arguments)
        return check(made, f"system call {number}") if made == -1 else made

    return make


def named(function: str, *arguments: int | bytes | None) -> int:
    """Call a function of the C library that makes a system call."""
    converted = [ctypes.c_ulong(value) if isinstance(value, int) else ctypes.c_char_p(value) for value in arguments]
    return check(getattr(_libc, function)(*converted), function)
