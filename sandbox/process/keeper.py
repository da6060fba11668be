"""The process between a service and its spawner: uses host rights to start it, gives them up, and outlives it.

`python -m sandbox.process.keeper DESCRIPTOR PARENT`: the connection to the service, and the process id of the service.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NoReturn

from sandbox import syscalls
from sandbox.config import Config
from sandbox.isolation import memory_group, mounts, namespaces, root
from sandbox.isolation.memory_group import Group, Groups
from sandbox.isolation.user import FIRST_USER
from sandbox.process.spawner import HostContext, Spawner, receive_config
from sandbox.process.wire import SIGNALLED
from sandbox.report import Guard, LayerReport, reason_of
from sandbox.rights import keep_only
from sandbox.unnamed import open_processes

Serve = Callable[[tuple[LayerReport, ...]], NoReturn]


def main() -> NoReturn:
    """Run a spawner until the service ends."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(sys.argv[2]):
        sys.exit("the service has ended")
    # Whatever umask the service has: the slots' users must pass through the directories created here.
    os.umask(0o022)
    config = receive_config(link)
    groups = Groups()
    made, refusal = _make_groups(groups, config)
    is_root, processes = os.geteuid() == 0, open_processes()
    child = start_spawner(
        config, lambda layers: Spawner(link, config, HostContext(layers, is_root, made, refusal, processes)).serve()
    )
    link.close()
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    # The spawner has its own rights by now; waiting for its end and removing groups needs none.
    with suppress(OSError):
        keep_only()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once it is reaped, its id may be that of another process
    _, status = os.waitpid(child, 0)
    groups.remove()
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else SIGNALLED - code)


def _make_groups(groups: Groups, config: Config) -> tuple[tuple[Group, ...], str]:
    if memory_group.NAME in config.without:
        return (), ""
    try:
        return groups.make(config.slots), ""
    except OSError as error:
        return (), reason_of(error)


def start_spawner(config: Config, serve: Serve) -> int:
    """Start the spawner with the strongest isolation that this host supports; returns its process id."""
    reasons: list[str] = []
    if namespaces.NAME in config.without:
        reasons.append("left out by configuration")
    else:
        for way, flags in namespaces.WAYS:
            try:
                is_root = os.geteuid() == 0
                set_up = partial(root.build, config, for_other_users=is_root)
                return _start_in_namespaces(config.slots, flags, set_up, serve)
            except OSError as error:
                reasons.append(f"{way}: {reason_of(error)}")
    return _start_outside(serve, _reports("; ".join(reasons)))


def _reports(reason: str) -> tuple[LayerReport, ...]:
    own_namespaces = (namespaces.NAME, namespaces.STOPS, frozenset({Guard.NETWORK}))
    own_root = (namespaces.ROOT_NAME, namespaces.ROOT_STOPS, frozenset[Guard]())
    return tuple(
        LayerReport(name=name, stops=stops, guards=guards, active=not reason, reason=reason)
        for name, stops, guards in (own_namespaces, own_root)
    )


def is_confined_by_any_user() -> bool:
    """Try whether a spawner in namespaces takes no right on the host: with a user namespace, its users and a mount."""

    def set_up() -> None:
        mounts.make_private()
        mounts.cover("/proc")

    def serve(_: tuple[LayerReport, ...]) -> NoReturn:
        os._exit(0)

    _, flags = namespaces.WAYS[0]
    try:
        child = _start_in_namespaces(1, flags, set_up, serve)
    except OSError:
        return False
    os.waitpid(child, 0)
    return True


def _start_in_namespaces(slots: int, flags: int, set_up: Callable[[], None], serve: Serve) -> int:
    """Start it as process 1 of new namespaces, in a root of its own that `set_up` makes.

    Raises:
        OSError: the host refuses a part of it; nothing is left of the attempt.
    """
    slot_users = range(FIRST_USER, FIRST_USER + slots)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = namespaces.fork_into(flags)
    if pid == 0:
        ours.close()
        _live(theirs, set_up, serve)
    theirs.close()
    with ours:
        try:
            if flags & namespaces.NEW_USER:
                namespaces.map_users(pid, slot_users)
            ours.send(b"go")
            refusal = ours.recv(1000).decode()
        except OSError as error:
            os.kill(pid, signal.SIGKILL)
            refusal = str(error)
    if refusal:
        os.waitpid(pid, 0)
        raise OSError(refusal)
    return pid


def _live(keeper: socket.socket, set_up: Callable[[], None], serve: Serve) -> NoReturn:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        # An empty message means that the keeper ended before the parent-death signal was set.
        if keeper.recv(10) == b"go":
            set_up()
            keeper.close()
            serve(_reports(""))
    except OSError as error:
        keeper.send(str(error).encode()[:1000])
    finally:
        os._exit(1)


def _start_outside(serve: Serve, reports: tuple[LayerReport, ...]) -> int:
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == keeper:
            serve(reports)
        os._exit(1)
    return child


if __name__ == "__main__":
    main()
