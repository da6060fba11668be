"""A Python process that has imported what commands need and forks for each: starts in 3 ms instead of 60 or more.

`python -m sandbox.launchers.zygote DESCRIPTOR MODULE…`: the socket to the spawner, and what to hold ready. It forks
twice, so that its grandchild becomes the spawner's own child; the plain fork of Python runs the handlers by which
libraries survive a fork. The grandchild gets behind its layers before it does anything with what it was sent.
"""

import array
import gc
import importlib
import importlib.util
import os
import signal
import socket
import sys
import traceback
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from sandbox.isolation.steps import take
from sandbox.launchers.python_server import Request
from sandbox.process import wire
from sandbox.process.run import NEVER_STARTED, redirect, tell_failure

_CHUNK = 1 << 18
_MOST_DESCRIPTORS = 4

Code = Mapping[str, types.CodeType]


def main() -> NoReturn:
    """Serve until the spawner ends."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    code = {name: _load(name) for name in sys.argv[2:]}
    gc.collect()
    gc.freeze()
    message = bytearray(_CHUNK)
    link.send(b"ready")
    while True:
        size, descriptors = _receive(link, message)
        if not size:
            os._exit(0)
        _fork(memoryview(message)[:size], descriptors, code)


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


def _fork(message: memoryview, descriptors: Sequence[int], code: Code) -> None:
    """Start the command of `message` in a grandchild, and erase it here: later children must not see it."""
    reader, writer = os.pipe()
    try:
        between = os.fork()
        if between == 0:
            _fork_again(writer, message, descriptors, code)
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


def _fork_again(writer: int, message: memoryview, descriptors: Sequence[int], code: Code) -> NoReturn:
    try:
        child = os.fork()
        if child == 0:
            _become(message, descriptors, code)
        os.write(writer, f"P{child}".encode())
    except OSError as error:
        os.write(writer, str(error).encode())
    finally:
        os._exit(0)


def _become(message: memoryview, descriptors: Sequence[int], code: Code) -> NoReturn:
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
    os.closerange(3, 1 << 16)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv = [request.module, *request.arguments]
    os._exit(_run(request.module, code[request.module]))


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


if __name__ == "__main__":
    main()
