"""What to run, and its limits."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

MIB = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits after which a command is ended; time during which it is suspended does not count."""

    wall_seconds: float = 120.0
    cpu_seconds: int = 120
    memory_bytes: int = 2560 * MIB
    file_bytes: int = 2048 * MIB
    directory_bytes: int = 4096 * MIB
    directory_files: int = 4096
    open_files: int = 1024
    stderr_bytes: int = 64 * 1024


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One program on untrusted input.

    `argv[0]` is an absolute path; `directory` is its working directory, absolute, below the pool's work root, and the
    only place that it can write to; `environment` is complete: the command inherits nothing.

    While a command runs, its directory belongs to the sandbox: owner and mode may change, and another directory with
    the same entries may replace it. Callers must therefore use its path, not a descriptor.
    """

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = {}
    limits: Limits = Limits()
