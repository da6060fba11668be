"""A Python process that has imported what commands need and forks for each: starts in 3 ms instead of 60 or more.

Its arguments are the descriptor of the socket to the spawner, and the modules to hold ready. It forks twice, so that
its grandchild becomes the spawner's own child; the plain fork of Python runs the handlers by which libraries survive a
fork. The grandchild gets behind its layers before it does anything with what it was sent.

It does not serve if a module has started a thread: a fork copies the locks that others hold, but not the others. The
modules may keep files open that they only read (PROJ its database). In the grandchildren, these are /dev/null: none
shares its position, flags or locks with another, and a library that notices the fork closes it and opens its file
again. It does not serve if they keep anything else open, such as a socket, a pipe or a file to write: a library would
use it as if no other process did. While modules are imported, no file can be written: libraries that would keep one
do without.
"""

import array
import fcntl
import gc
import importlib
import importlib.util
import os
import resource
import signal
import socket
import stat
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, NoReturn

from sandbox import syscalls
from sandbox.isolation.steps import take
from sandbox.launchers.python_server import Request
from sandbox.process import wire
from sandbox.process.run import NEVER_STARTED, redirect, tell_failure

_CHUNK = 1 << 18
_MOST_DESCRIPTORS = 4
_ABOVE_ALL_DESCRIPTORS = 1 << 16
_LAST_DESCRIPTOR_LOOKED_AT = 1 << 10
_CLONE_THREAD = 0x10000
_NULL = 0  # where `redirect` puts a /dev/null that this process alone has

Code = Mapping[str, types.CodeType]


class Loaded(NamedTuple):
    """The code of each module, and the descriptors that their imports have left open, in ascending order."""

    code: Code
    kept_open: Sequence[int]


def main(file_size: tuple[int, int]) -> NoReturn:
    """Serve until the spawner ends; `file_size` is the limit that holds again once all modules are imported."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    code = {name: _load(name) for name in sys.argv[2:]}
    if _has_threads():
        sys.exit("an imported module has started a thread")
    loaded = Loaded(code, [each for each in range(3, _LAST_DESCRIPTOR_LOOKED_AT) if _is_open(each, link)])
    if not all(map(_is_file_to_read, loaded.kept_open)):
        sys.exit("an imported module keeps something open that is no file to read")
    resource.setrlimit(resource.RLIMIT_FSIZE, file_size)
    gc.collect()
    gc.freeze()
    message = bytearray(_CHUNK)
    link.send(b"ready")
    while True:
        size, descriptors = _receive(link, message)
        if not size:
            os._exit(0)
        _fork(memoryview(message)[:size], descriptors, loaded)


def _has_threads() -> bool:
    """Whether this process has threads, also those of which Python knows nothing; if that is unknown, it has."""
    with suppress(FileNotFoundError):
        return len(os.listdir("/proc/self/task")) > 1  # noqa: PTH208 -- as below, the host's own
    try:
        # Where /proc is hidden, namespaces are permitted. This call does nothing, if there is only one thread.
        syscalls.named("unshare", _CLONE_THREAD)
    except OSError:
        return True
    return False


def _is_open(number: int, link: socket.socket) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return number != link.fileno()


def _is_file_to_read(number: int) -> bool:
    is_read_only = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    return is_read_only and stat.S_ISREG(os.fstat(number).st_mode)


def _load(name: str) -> types.CodeType:
    """The code of a module, which has been imported together with all its imports."""
    importlib.import_module(name)
    spec = importlib.util.find_spec(name)
    get_code = getattr(spec and spec.loader, "get_code", None)
    code = get_code(name) if get_code else None
    if isinstance(code, types.CodeType):
        return code
    raise ImportError(f"{name} has no code", name=name)


def _receive(link: socket.socket, message: bytearray) -> tuple[int, list[int]]:
    space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
    size, extra, _, _ = link.recvmsg_into([message], space)
    descriptors = array.array("i")
    for _level, _kind, data in extra:
        descriptors.frombytes(data)
    return size, list(descriptors)


def _fork(message: memoryview, descriptors: Sequence[int], loaded: Loaded) -> None:
    """Start the command of `message` in a grandchild, and erase it here: later children must not see it."""
    reader, writer = os.pipe()
    try:
        between = os.fork()
        if between == 0:
            _fork_again(writer, message, descriptors, loaded)
        os.waitpid(between, 0)
    except OSError as error:
        os.write(writer, str(error).encode())
    message[:] = bytes(len(message))
    os.close(writer)
    # Only now, when the grandchild has been adopted, is the spawner told of it.
    with suppress(OSError):  # it has given up
        os.write(descriptors[0], os.read(reader, 1000) or b"the fork was killed")
    for descriptor in (reader, *descriptors):
        os.close(descriptor)


def _fork_again(writer: int, message: memoryview, descriptors: Sequence[int], loaded: Loaded) -> NoReturn:
    try:
        child = os.fork()
        if child == 0:
            _become(message, descriptors, loaded)
        os.write(writer, f"P{child}".encode())
    except OSError as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(0)


def _become(message: memoryview, descriptors: Sequence[int], loaded: Loaded) -> NoReturn:
    control, stderr, *rest = descriptors
    try:
        if os.read(control, 10) != b"go":
            os._exit(NEVER_STARTED)
        request = wire.unpack(bytes(message), Request)
        redirect(stderr)
        take(request.steps, rest)
    except Exception as error:  # noqa: BLE001 - no failure may let the program start
        tell_failure(control, error)
        os._exit(NEVER_STARTED)
    _close_all(loaded.kept_open)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = [request.module, *request.arguments]
    os._exit(_run(request.module, loaded.code[request.module]))


def _close_all(kept_open: Sequence[int]) -> None:
    """Close all descriptors but the first three; those that libraries take for theirs become /dev/null."""
    for number in kept_open:
        os.dup2(_NULL, number, inheritable=False)
    ends = [*kept_open, _ABOVE_ALL_DESCRIPTORS]
    for after, end in zip([2, *kept_open], ends, strict=True):
        os.closerange(after + 1, end)


def _run(name: str, code: types.CodeType) -> int:
    """Run a module's code as Python would run `-m`, to its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    module = types.ModuleType("__main__")
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    module.__dict__.update(__file__=code.co_filename, __package__=name.rpartition(".")[0])
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - our own module's code
    except SystemExit as leaving:
        return _exit_code(leaving)
    except BaseException:  # noqa: BLE001 - what an interpreter would print
        traceback.print_exc()
        return 1
    finally:
        sys.stderr.flush()
    return 0


def _exit_code(leaving: SystemExit) -> int:
    if leaving.code is None or isinstance(leaving.code, int):
        return (leaving.code or 0) & 0xFF
    print(leaving.code, file=sys.stderr)  # noqa: T201 - what an interpreter would print
    return 1
