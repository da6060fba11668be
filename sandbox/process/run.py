"""One run of a converter: starts it, watches it, enforces its limits and makes its verdict.

Theory of operation. `spawn` forks a child of the spawner for plain exec; the servers in `launchers` fork their prepared
processes instead. Either way the child enters every layer, in order, and only then becomes the program. A control
socket connects it to the spawner: a layer or an exec that fails reports the failure on it, and it is closed when the
program starts. So a run either runs behind all its layers or ends with that failure.

A `Run` watches one such child: it drains the error output and keeps the first part, checks the quota periodically, and
enforces the deadline. Neither the start of the program nor the end of its output wakes the spawner, because each time
costs more than what is to be done then: the control socket is read when somebody asks, and the spawner keeps the
writing end of the error output, so that only its content makes it readable.

Everything that ends a run early goes through `stop`: SIGKILL to the group and to the process (which may not lead its
group yet), repeated while the process exists, and at last a verdict without its exit status. There is no SIGTERM first:
a converter could only clean up a directory that is deleted anyway.

When the child has ended, the spawner kills the rest of its group *before* reaping it, while its id cannot be reused,
and `exited` makes the verdict. Only runs are killed by group: a server is killed alone, because each of its children is
in the server's group until it has entered its own session.
"""

import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from sandbox import quota
from sandbox.command import Command
from sandbox.isolation.jail import Confinement
from sandbox.isolation.steps import take
from sandbox.process.loop import Loop, Timer
from sandbox.verdict import Ending, ProcessEnd, Verdict, judge

_KILL_INTERVAL_SECONDS = 1.0
_INSIST_TIMES = 5
_FIRST_LOOK_SECONDS = 0.1
_LEAST_COMPUTING_SECONDS = 0.02
_SKIPPED_SECONDS = 0.05
_MOST_SKIPPED = 5
# The kernel encodes the clock of a process as the complement of its id with this clock type.
_COMPUTING_CLOCK = 2
_CHUNK = 1 << 16
NEVER_STARTED = 120


class Child:
    """A process that is or becomes a program: its id, its control socket and both ends of its error output."""

    def __init__(self, pid: int, control: socket.socket, stderr: int, stderr_end: int) -> None:
        self.pid = pid
        self.control = control
        self.stderr = stderr
        self.stderr_end = stderr_end


class Streams:
    """The connections to a new process: the control socket and the pipe of its error output."""

    def __init__(self) -> None:
        self.control, self.control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stderr, self.stderr_end = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.stderr, False)

    def handed_over(self) -> None:
        """Close our copy of the control end that the process has received, so that its start closes the socket."""
        self.control_end.close()

    def child(self, pid: int) -> Child:
        """The process that holds the other ends."""
        return Child(pid, self.control, self.stderr, self.stderr_end)

    def abandon(self) -> None:
        """Close everything, because no process was started."""
        self.control.close()
        self.control_end.close()
        os.close(self.stderr)
        os.close(self.stderr_end)


def spawn(argv: Sequence[str], environment: Mapping[str, str], confinement: Confinement) -> Child:
    """Start a program behind its layers and return at once."""
    streams = Streams()
    try:
        pid = os.fork()
    except OSError:
        streams.abandon()
        raise
    if pid == 0:
        _become(streams, argv, environment, confinement)
    streams.handed_over()
    return streams.child(pid)


def _become(
    streams: Streams, argv: Sequence[str], environment: Mapping[str, str], confinement: Confinement
) -> NoReturn:
    control = streams.control_end.fileno()
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        redirect(streams.stderr_end)
        take(confinement.steps, confinement.descriptors)
        os.execve(argv[0], list(argv), dict(environment))  # noqa: S606 - no shell is wanted
    except Exception as error:  # noqa: BLE001 - no failure may let anything else happen
        tell_failure(control, error)
    finally:
        os._exit(NEVER_STARTED)


def tell_failure(control: int, error: Exception) -> None:
    """Report why the program does not start."""
    # Not `send`, which the system-call filter denies.
    os.write(control, str(error).encode()[:1000])


def redirect(stderr: int) -> None:
    """Redirect standard input and output to /dev/null, and the error output to `stderr`."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(stderr, 2)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and to its group, if they exist."""
    for send in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            send(pid, number)


def kill_group(pid: int) -> None:
    """Send SIGKILL to a process and to its group, if they exist."""
    signal_group(pid, signal.SIGKILL)


class Run:
    """One command, from the start of its process to its verdict."""

    def __init__(
        self,
        loop: Loop,
        child: Child,
        command: Command,
        *,
        launcher: str,
        killed_for_memory: Callable[[], bool],
        unnamed_files: Callable[[], Iterable[int]],
        finished: Callable[[Verdict], None],
    ) -> None:
        self._loop = loop
        self._child = child
        self._directory = str(command.directory)
        self._limits = command.limits
        self._launcher = launcher
        self._killed_for_memory = killed_for_memory
        self._unnamed_files = unnamed_files
        self._finished = finished
        self._began = time.monotonic()
        self._suspended_at: float | None = None
        self._stopped_for: Ending | None = None
        self._failure = ""
        self._stderr = bytearray()
        self._computed, self._skipped = 0.0, 0
        self._over = False
        self._was_full = quota.disk_is_full(self._directory)
        self._listening = True
        loop.watch(child.stderr, self._drain)
        self._deadline = loop.after(self._limits.wall_seconds, lambda: self.stop(Ending.WALL_TIME))
        first_look = min(_FIRST_LOOK_SECONDS, quota.NOTHING.seconds_of_room(self._limits))
        self._look: Timer = loop.after(first_look, self._look_at_what_it_holds)

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._child.pid

    def stop(self, reason: Ending) -> None:
        """End the run early; the first reason counts."""
        if self._stopped_for is None and not self._over:
            self._stopped_for = reason
            self._kill_until_gone(_INSIST_TIMES)

    def suspend(self) -> None:
        """Stop its processes and its clock."""
        if self._suspended_at is None and not self._over:
            self._suspended_at = time.monotonic()
            self._deadline.cancel()
            signal_group(self._child.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue its processes, with the time that was left."""
        if self._suspended_at is not None and not self._over:
            signal_group(self._child.pid, signal.SIGCONT)
            left = self._limits.wall_seconds - self._wall_seconds()
            self._began += time.monotonic() - self._suspended_at
            self._suspended_at = None
            self._deadline = self._loop.after(left, lambda: self.stop(Ending.WALL_TIME))

    def _wall_seconds(self) -> float:
        """How long it has run, excluding the time for which it was suspended."""
        return (time.monotonic() if self._suspended_at is None else self._suspended_at) - self._began

    def _kill_until_gone(self, times: int) -> None:
        if self._over:
            return
        if times == 0:
            self._failure, self._stopped_for = "its process cannot be ended", None
            self._conclude(0, 0.0, 0)
            return
        kill_group(self._child.pid)
        self._loop.after(_KILL_INTERVAL_SECONDS, lambda: self._kill_until_gone(times - 1))

    def exited(self, status: int, usage: resource.struct_rusage) -> None:
        """Make the verdict; its process has been reaped."""
        if not self._over:
            self._drain()
            self._read_start()
            if quota.measure(self._directory, self._limits).exceeds(self._limits):
                self._stopped_for = self._stopped_for or Ending.OUTPUT_SIZE
            self._conclude(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)

    def _conclude(self, status: int, cpu_seconds: float, peak_memory_bytes: int) -> None:
        self._over = True
        self._deadline.cancel()
        self._look.cancel()
        self._loop.unwatch(self._child.stderr)
        os.close(self._child.stderr)
        os.close(self._child.stderr_end)
        self._stop_listening()
        end = ProcessEnd(
            wait_status=status,
            stopped_for=self._stopped_for,
            failure=self._failure,
            disk_full=self._has_been_full(),
            killed_for_memory=self._killed_for_memory(),
            over_cpu=cpu_seconds >= self._limits.cpu_seconds,
            untrusted_stderr=bytes(self._stderr),
        )
        self._finished(
            Verdict(
                ending=judge(end),
                exit_code=end.exit_code,
                signal=end.signal,
                wall_seconds=self._wall_seconds(),
                cpu_seconds=cpu_seconds,
                peak_memory_bytes=peak_memory_bytes,
                untrusted_stderr=end.untrusted_stderr,
                detail=self._failure,
                launcher=self._launcher,
            )
        )

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._child.stderr, _CHUNK)
            self._stderr += data[: self._limits.stderr_bytes - len(self._stderr)]

    def _read_start(self) -> None:
        """Learn whether the program has started, or why not."""
        if self._listening:
            with suppress(BlockingIOError):
                self._failure = self._start_message().decode(errors="replace")
                self._stop_listening()

    def _start_message(self) -> bytes:
        """What its process has written before the end of the socket; `BlockingIOError` if neither has come yet."""
        try:
            return self._child.control.recv(_CHUNK, socket.MSG_DONTWAIT)
        except ConnectionResetError:  # told once, and first, of a process that has not read all that it was sent
            return self._child.control.recv(_CHUNK, socket.MSG_DONTWAIT)

    def _stop_listening(self) -> None:
        if self._listening:
            self._listening = False
            self._child.control.close()

    def _has_been_full(self) -> bool:
        """Whether its disk is full or was at an earlier look, when its writes may have failed."""
        self._was_full = self._was_full or quota.disk_is_full(self._directory)
        return self._was_full

    def _look_at_what_it_holds(self) -> None:
        self._has_been_full()
        computed = _computing_seconds(self._child.pid)
        # A run that has hardly computed has hardly written: on a busy host a small conversion mostly waits.
        if computed - self._computed < _LEAST_COMPUTING_SECONDS and self._skipped < _MOST_SKIPPED:
            self._skipped += 1
            pause = _SKIPPED_SECONDS
        else:
            self._skipped, self._computed = 0, computed
            pause = self._look_closer()
        self._look = self._loop.after(pause, self._look_at_what_it_holds)

    def _look_closer(self) -> float:
        """End the run if it exceeds its quota; returns the seconds until the next check."""
        # Before it becomes the program it holds nothing, and the spawner may not inspect all such processes.
        self._read_start()
        unnamed = () if self._listening else self._unnamed_files()
        use = quota.measure(self._directory, self._limits, unnamed)
        if use.exceeds(self._limits):
            self.stop(Ending.OUTPUT_SIZE)
        return use.seconds_of_room(self._limits)


def _computing_seconds(pid: int) -> float:
    """The processor time of a process since it began, in seconds."""
    try:
        return time.clock_gettime(~pid << 3 | _COMPUTING_CLOCK)
    except OSError:  # it has ended
        return 0.0
