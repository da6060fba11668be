"""How a run ended, as data, and the rules that decide it."""

import os
import re
import signal
from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec


class Ending(StrEnum):
    """The ways in which a run ends."""

    OK = "ok"
    EXIT = "exit"
    SIGNAL = "signal"
    WALL_TIME = "wall_time"
    CPU_TIME = "cpu_time"
    MEMORY = "memory"
    OUTPUT_SIZE = "output_size"
    DISK_FULL = "disk_full"
    INTERNAL = "internal"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """How one run ended and what it used. What the program wrote is untrusted.

    `detail` is our own text for the log: what failed if `ending` is INTERNAL. `launcher` names what started the run.
    """

    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    untrusted_stderr: bytes = b""
    detail: str = ""
    launcher: str = ""


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What was observed when a process ended; `judge` interprets it."""

    wait_status: int
    stopped_for: Ending | None = None
    failure: str = ""
    disk_full: bool = False
    killed_for_memory: bool = False
    over_cpu: bool = False
    untrusted_stderr: bytes = b""

    @property
    def exit_code(self) -> int | None:
        """The exit code, or None after a signal."""
        return os.WEXITSTATUS(self.wait_status) if os.WIFEXITED(self.wait_status) else None

    @property
    def signal(self) -> int | None:
        """The signal that ended it, or None."""
        return os.WTERMSIG(self.wait_status) if os.WIFSIGNALED(self.wait_status) else None

    def complains(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether it failed and its error output matches `pattern`."""
        return self.wait_status != 0 and pattern.search(self.untrusted_stderr) is not None


_NO_LIBRARIES = re.compile(rb"error while loading shared libraries")
_NO_DISK = re.compile(rb"No space left on device|database or disk is full")
_TOO_LARGE = re.compile(rb"File too large")
_NO_MEMORY = re.compile(
    rb"bad_alloc|MemoryError|[Oo]ut of memory|[Cc]annot allocate|Failure allocatin|Unexpected error\.", re.ASCII
)

# The first matching rule decides. A full disk precedes a clean exit, because several drivers end with code 0 and a
# truncated file if writing fails.
_RULES: tuple[tuple[Ending, Callable[[ProcessEnd], bool]], ...] = (
    (Ending.INTERNAL, lambda end: bool(end.failure) or end.complains(_NO_LIBRARIES)),
    (Ending.DISK_FULL, lambda end: end.disk_full or end.complains(_NO_DISK)),
    (Ending.CPU_TIME, lambda end: end.signal == signal.SIGXCPU or (end.signal == signal.SIGKILL and end.over_cpu)),
    (Ending.OUTPUT_SIZE, lambda end: end.signal == signal.SIGXFSZ or end.complains(_TOO_LARGE)),
    (Ending.MEMORY, lambda end: end.killed_for_memory or end.complains(_NO_MEMORY)),
    (Ending.SIGNAL, lambda end: end.signal is not None),
    (Ending.EXIT, lambda end: end.exit_code != 0),
    (Ending.OK, lambda _: True),
)


def judge(end: ProcessEnd) -> Ending:
    """Decide how a run ended."""
    return end.stopped_for or next(ending for ending, holds in _RULES if holds(end))


_SENTENCES: Mapping[Ending, str] = {
    Ending.OK: "The conversion finished.",
    Ending.EXIT: "The file could not be converted: it is damaged or is not what its name says.",
    Ending.SIGNAL: "The converter crashed on this file: it is damaged, or beyond what its format allows.",
    Ending.WALL_TIME: "The conversion took longer than allowed; split the file or simplify its shapes.",
    Ending.CPU_TIME: "The conversion needs more computing time than allowed; split the file.",
    Ending.MEMORY: "The conversion needs more memory than allowed; split the file or simplify it.",
    Ending.OUTPUT_SIZE: "The result is larger than allowed; split the file or choose another format.",
    Ending.DISK_FULL: "The service has no disk space left for the result; try again later.",
    Ending.INTERNAL: "The service could not run the conversion; try again later.",
}


def plain_language(verdict: Verdict) -> str:
    """One sentence for the client whose file it was."""
    return _SENTENCES[verdict.ending]
