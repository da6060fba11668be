"""The process above all runs: takes commands from the service, starts them, watches them, answers with verdicts.

It is the only thread of the only process that forks, so the parent-death signal of a run means what it says. When its
service closes the connection, for whatever reason, it ends and takes everything below it along.
"""

import gc
import os
import socket
from collections.abc import Sequence
from typing import NoReturn

from sandbox import launch, policy, syscalls
from sandbox.config import Config, LauncherName
from sandbox.enclosure import Enclosure
from sandbox.launch import Run, kill_group
from sandbox.loop import Loop
from sandbox.report import LauncherReport, LayerReport, Report
from sandbox.verdict import Ending, Verdict
from sandbox.wire import Configure, Finished, Frames, Ready, Start, Stop, ToSpawner, decode_for_spawner, encode

_CHUNK = 1 << 16


class Spawner:
    """Runs what its service asks for, in slots."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._frames = Frames()
        self._runs: dict[int, Run] = {}
        self._by_pid: dict[int, Run] = {}

    def serve(self, config: Config, surroundings: Sequence[LayerReport]) -> NoReturn:
        """Report what holds here, then take commands until the service is gone.

        `surroundings` are the layers that the whole spawner already lives in.
        """
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        self._work_root = str(config.work_root)
        candidates = policy.layers(config, in_namespaces=all(layer.active for layer in surroundings))
        layers, reports = policy.choose(candidates, config.without)
        self._enclosure = Enclosure(layers, self._work_root)
        launchers = (LauncherReport(name=LauncherName.EXEC, active=True),)
        self._loop = Loop(self._reap)
        self._loop.watch(self._link.fileno(), self._receive)
        self._send(Ready(report=Report(layers=(*surroundings, *reports), launchers=launchers)))
        gc.collect()
        gc.freeze()
        while True:
            self._loop.turn()

    def _receive(self) -> None:
        data = self._link.recv(_CHUNK)
        if not data:
            self._end()
        for body in self._frames.feed(data):
            self._handle(decode_for_spawner(body))

    def _handle(self, message: ToSpawner) -> None:
        match message:
            case Start():
                self._start(message)
            case Stop(run=number) if number in self._runs:
                self._runs[number].stop(Ending.SIGNAL)
            case Stop() | Configure():
                pass

    def _start(self, message: Start) -> None:
        command = message.command
        try:
            with self._enclosure.prepared(message.slot, command) as jail:
                child = launch.spawn(self._enclosure.layers, command.argv, command.environment, jail)
        except OSError as error:
            self._answer(message.run, Verdict(ending=Ending.INTERNAL, detail=f"start: {error}"))
            return

        def finished(verdict: Verdict) -> None:
            del self._runs[message.run]
            self._answer(message.run, verdict)

        run = Run(self._loop, child, jail, launcher=LauncherName.EXEC, finished=finished)
        self._runs[message.run] = self._by_pid[child.pid] = run

    def _reap(self) -> None:
        while (pid := _ended_child()) is not None:
            # Not reaped yet, so its id, and that of its group, cannot be anyone else's.
            kill_group(pid)
            _, status, usage = os.wait4(pid, 0)
            run = self._by_pid.pop(pid, None)
            if run is not None:
                run.exited(status, usage)

    def _answer(self, number: int, verdict: Verdict) -> None:
        self._send(Finished(run=number, verdict=verdict))

    def _send(self, message: Ready | Finished) -> None:
        try:
            self._link.sendall(encode(message))
        except OSError:
            self._end()

    def _end(self) -> NoReturn:
        for pid in self._by_pid:
            kill_group(pid)
        os._exit(0)


def _ended_child() -> int | None:
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended else None


def receive_config(link: socket.socket) -> Config:
    """Read the first message of the service.

    Raises:
        EOFError: the service went away first.
    """
    frames = Frames()
    while data := link.recv(_CHUNK):
        for body in frames.feed(data):
            message = decode_for_spawner(body)
            if isinstance(message, Configure):
                return message.config
    raise EOFError("the service left before it said what to do")
