"""The parent of all runs: receives commands from the service, starts and watches them, and returns verdicts.

It has one thread, because the parent-death signal of a run fires when the thread that forked it ends. When the service
closes the connection, for whatever reason, the spawner ends together with all processes below it.
"""

import gc
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NoReturn

import msgspec

from sandbox import syscalls
from sandbox.config import Config, LauncherName
from sandbox.isolation import policy, rlimits
from sandbox.isolation.context import IsolationContext
from sandbox.isolation.memory_group import Group, MemoryGroup
from sandbox.isolation.seccomp import SystemCallFilter
from sandbox.isolation.user import FIRST_USER, UnprivilegedUser
from sandbox.launchers import Launcher
from sandbox.launchers.ogr2ogr_server import Ogr2ogrServerKind
from sandbox.launchers.on_demand import OnDemandLauncher
from sandbox.launchers.plain_exec import PlainExec
from sandbox.launchers.python_server import python_servers
from sandbox.launchers.server import ServerLauncher
from sandbox.process import orphans, wire
from sandbox.process.loop import Loop
from sandbox.process.run import Child, Run, kill_group
from sandbox.report import LayerReport, SandboxReport
from sandbox.unnamed import UnnamedFiles
from sandbox.verdict import Ending, Verdict

_CHUNK = 1 << 16


class HostContext(msgspec.Struct, frozen=True):
    """The spawner's environment: the layers around all runs, whether it is root on the host, and its memory groups.

    `processes` is a descriptor of the host's /proc, or None.
    """

    layers: tuple[LayerReport, ...]
    is_root: bool
    groups: tuple[Group, ...]
    no_groups: str
    processes: int | None

    @property
    def in_namespaces(self) -> bool:
        """Whether the spawner has its own mount namespace."""
        return all(layer.active for layer in self.layers)


class Spawner:
    """Runs the service's commands in slots."""

    def __init__(self, link: socket.socket, config: Config, surroundings: HostContext) -> None:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        self._link = link
        self._frames = wire.Frames()
        self._runs: dict[int, Run | wire.Start] = {}
        """A run, or its command until it has started."""
        self._unwanted: set[int] = set()
        self._by_pid: dict[int, Run] = {}
        self._by_slot: dict[int, Run] = {}
        self._suspended: set[int] = set()
        memory = MemoryGroup(surroundings.groups, surroundings.no_groups)
        candidates = policy.layers(
            config, in_namespaces=surroundings.in_namespaces, is_root=surroundings.is_root, memory=memory
        )
        layers, reports = policy.choose(candidates, config.without)
        self._runs_may_fork = not any(isinstance(layer, SystemCallFilter) for layer in layers)
        # A process may change the limits of any other process of its user, unless the filter or another user stops it.
        self._runs_may_limit = self._runs_may_fork and not any(isinstance(layer, UnprivilegedUser) for layer in layers)
        self._limits = rlimits.of_this_process()
        self._loop = Loop(self._reap)
        self._moved = _moved_roots(config, in_namespaces=surroundings.in_namespaces)
        self._decode = wire.decoder_for_spawner(self._inside)
        roots = (str(config.work_root), *self._moved.values())
        user = FIRST_USER if any(isinstance(layer, UnprivilegedUser) for layer in layers) else None
        count = UnnamedFiles(surroundings.processes, roots, user)
        self._counts, counting = policy.choose((count,), config.without)
        self._report = SandboxReport(layers=(*surroundings.layers, *reports, *counting))
        self._isolation = IsolationContext(layers, roots, surroundings.groups)
        self._launchers = _launchers(config, self._isolation, self._loop)
        self._used: Sequence[Launcher] = self._launchers

    def serve(self) -> NoReturn:
        """Send the report, then accept commands until the service closes the connection."""
        self._loop.watch(self._link.fileno(), self._receive)
        self._send(wire.Ready(report=self._report))
        gc.collect()
        gc.freeze()
        while True:
            self._loop.turn()

    def _receive(self) -> None:
        data = self._link.recv(_CHUNK)
        if not data:
            self._end()
        for body in self._frames.feed(data):
            self._handle(self._decode(body))

    def _handle(self, message: wire.ToSpawner) -> None:
        match message:
            case wire.Start():
                self._runs[message.run] = message
                self._start(message, self._candidates(message), "no launcher takes it")
            case wire.Stop(run=number):
                self._stop(number)
            case wire.Suspend(slot=slot):
                self._suspended.add(slot)
                if slot in self._by_slot:
                    self._by_slot[slot].suspend()
            case wire.Resume(slot=slot):
                self._suspended.discard(slot)
                if slot in self._by_slot:
                    self._by_slot[slot].resume()
            case wire.Use(launchers=names):
                self._used = [launcher for launcher in self._launchers if launcher.name in names]
            case wire.Ping():
                self._send(wire.Pong())
            case wire.Configure():
                pass

    def _inside(self, path: str) -> str:
        """A path of the service in this namespace."""
        for root, here in self._moved.items():
            if path.startswith(f"{root}/"):
                return f"{here}{path[len(root) :]}"
        return path

    def _candidates(self, message: wire.Start) -> list[Launcher]:
        wanted = message.launcher
        asked = [each for each in self._launchers if each.name == wanted] if wanted else self._used
        return [launcher for launcher in asked if launcher.takes(message.command)]

    def _start(self, message: wire.Start, candidates: list[Launcher], reason: str) -> None:
        """Try one launcher after another; `reason` is the last one's failure."""
        if not candidates or message.run in self._unwanted:
            self._answer(message.run, Verdict(ending=Ending.INTERNAL, detail=f"start: {reason}"))
            return
        launcher, *rest = candidates
        launcher.start(
            message.command,
            message.slot,
            lambda child: self._spawned(message, launcher, child),
            lambda failure: self._start(message, rest, failure),
        )

    def _spawned(self, message: wire.Start, launcher: Launcher, child: Child) -> None:
        def finished(verdict: Verdict) -> None:
            del self._by_slot[message.slot]
            self._answer(message.run, verdict)

        def unnamed_files() -> Iterator[int]:
            return chain.from_iterable(count.sizes(child.pid, message.command.limits) for count in self._counts)

        memory_watch = self._isolation.memory_watch(message.slot, message.command.limits.memory_bytes)
        run = Run(
            self._loop,
            child,
            message.command,
            launcher=launcher.name,
            killed_for_memory=memory_watch,
            unnamed_files=unnamed_files,
            finished=finished,
        )
        self._runs[message.run] = self._by_pid[child.pid] = self._by_slot[message.slot] = run
        if message.slot in self._suspended:
            run.suspend()
        if message.run in self._unwanted:
            run.stop(Ending.SIGNAL)

    def _stop(self, number: int) -> None:
        match self._runs.get(number):
            case Run() as run:
                run.stop(Ending.SIGNAL)
            case wire.Start(slot=slot):
                self._unwanted.add(number)
                for launcher in self._launchers:
                    launcher.withdraw(slot)

    def _reap(self) -> None:
        while (pid := _ended_child()) is not None:
            run = self._by_pid.pop(pid, None)
            if run is not None:
                # Not reaped yet, so the ids of process and group cannot be reused.
                kill_group(pid)
            _, status, usage = os.wait4(pid, 0)
            if run is not None:
                if self._runs_may_fork:
                    orphans.end_all(pid, self._is_known)
                run.exited(status, usage)
                if self._runs_may_limit and rlimits.of_this_process() != self._limits:
                    # The limits cannot be raised again; the service starts a new spawner.
                    self._end()
            else:
                for launcher in self._launchers:
                    launcher.ended(pid)

    def _is_known(self, pid: int) -> bool:
        return pid in self._by_pid or any(pid in launcher.pids() for launcher in self._launchers)

    def _answer(self, number: int, verdict: Verdict) -> None:
        del self._runs[number]
        self._unwanted.discard(number)
        self._send(wire.Finished(run=number, verdict=verdict))

    def _send(self, message: wire.FromSpawner) -> None:
        try:
            self._link.sendall(wire.encode(message))
        except OSError:
            self._end()

    def _end(self) -> NoReturn:
        for pid in self._by_pid:
            kill_group(pid)
        os._exit(0)


def _moved_roots(config: Config, *, in_namespaces: bool) -> Mapping[str, str]:
    """Roots of runs whose path here differs from that on the host."""
    if config.memory_root is None:
        return {}
    return {str(config.memory_root): str(config.memory_inside if in_namespaces else config.memory_root)}


def _launchers(config: Config, isolation: IsolationContext, loop: Loop) -> tuple[Launcher, ...]:
    """The launchers that the configuration allows, in the order in which they are tried."""
    found: list[Launcher] = []
    ogr2ogr = config.ogr2ogr
    commands = config.commands_per_server
    if LauncherName.FORK_SERVER in config.launchers and ogr2ogr is not None and ogr2ogr.fork_server is not None:
        found.append(ServerLauncher(Ogr2ogrServerKind(ogr2ogr, ogr2ogr.fork_server), isolation, loop, commands))
    idle_seconds = config.python.idle_seconds
    found += (OnDemandLauncher(kind, isolation, loop, commands, idle_seconds) for kind in python_servers(config))
    return (*found, PlainExec(isolation))


def _ended_child() -> int | None:
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended else None


def receive_config(link: socket.socket) -> Config:
    """Read the first message of the service.

    Raises:
        EOFError: the service closed the connection first.
    """
    frames, decode = wire.Frames(), wire.decoder_for_spawner()
    while data := link.recv(_CHUNK):
        for body in frames.feed(data):
            message = decode(body)
            if isinstance(message, wire.Configure):
                return message.config
    raise EOFError("the service closed the connection before it sent a configuration")
