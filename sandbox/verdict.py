"""How a run ended, as data."""

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
    """How one run ended and what it used. What the program wrote is untrusted."""

    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    untrusted_stderr: bytes = b""
