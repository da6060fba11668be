"""The process that `forked` forks others from: `python -m tests.support.template DESCRIPTOR` with the socket to it.

A request is the arguments, the environment and the directory of a `geomill` command, with three descriptors: a socket
for what is told of the process, then its standard output and standard error. Told are the process id, together with a
descriptor of the process, and in the end the exit code. The template ends when the other end of its socket is closed,
and asks what it has started and still runs to end too.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

import anyio

from service.cli.main import COMMANDS, load
from service.cli.main import main as geomill
from service.server import heap
from tests.support import probed

MOST_BYTES = 1 << 17


def main(link: socket.socket) -> None:
    """Serve requests until the tests end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: what was forked obeys it, and the tests end this one
    for name in COMMANDS:
        load(name)
    anyio.run(anyio.sleep, 0)  # imports what event loops need
    probed.look_once()
    probed.look_now()
    heap._writable_memory = lambda: iter(())  # to move what they share into huge pages takes longer than tests gain
    running: dict[int, tuple[int, socket.socket]] = {}
    events = select.poll()
    events.register(link, select.POLLIN)
    while True:
        for descriptor, _ in events.poll():
            if descriptor != link.fileno():
                events.unregister(descriptor)
                os.close(descriptor)
                pid, status = running.pop(descriptor)
                _tell(status, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                status.close()
            elif started := _fork(link):
                pid, status = started
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid, status
                events.register(pidfd, select.POLLIN)
                _tell(status, pid, pidfd)
            else:
                for left in running:  # the tests were interrupted
                    signal.pidfd_send_signal(left, signal.SIGTERM)
                return


def _fork(link: socket.socket) -> tuple[int, socket.socket] | None:
    """Fork for the next request; returns the process id and the socket for what is told, or None after the last."""
    request, descriptors, _, _ = socket.recv_fds(link, MOST_BYTES, 3)
    if not request:
        return None
    command = json.loads(request)
    _load(command[1])
    status = socket.socket(fileno=descriptors[0])
    pid = os.fork()
    if pid == 0:
        _become(command, descriptors[1:])
    for descriptor in descriptors[1:]:
        os.close(descriptor)
    return pid, status


def _load(environment: Mapping[str, str]) -> None:
    """Import, once for all, what processes with these settings import on demand, which is most of their starts."""
    if environment.get("GEOMILL_S3_BUCKET"):
        import service.storage.s3  # noqa: PLC0415 -- see above
    if environment.get("GEOMILL_NATS_URL"):
        import service.usecases.answers  # noqa: PLC0415 -- see above
        import service.usecases.fleet  # noqa: PLC0415 -- see above
    if environment.get("GEOMILL_TRACES_URL"):
        import service.telemetry.opentelemetry  # noqa: F401, PLC0415 -- see above
    gc.freeze()


def _become(request: tuple[Sequence[str], dict[str, str], str], streams: Sequence[int]) -> NoReturn:
    """Run the command as a process of its own would."""
    arguments, environment, directory = request
    code: object = 1
    try:
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        for number, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
            os.dup2(stream, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        sys.argv = ["geomill", *arguments]
        tempfile.tempdir = None  # to be found in the new environment
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # which a run of the tests by `nohup` ignores
        code = geomill(arguments)
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:  # noqa: BLE001 -- what an interpreter would print
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(
        code if isinstance(code, int) else 1
    )  # to take apart all that was imported takes longer than many commands


def _tell(status: socket.socket, message: object, *descriptors: int) -> None:
    with suppress(BrokenPipeError):  # the test no longer listens
        socket.send_fds(status, [json.dumps(message).encode()], descriptors)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
