"""What to run and how far it may go."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

MIB = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How far one command may go before it is ended; the time for which it is suspended does not count."""

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

    `argv[0]` is an absolute path; `directory` is its working directory, absolute, below the pool's work root, and
    the only place that it can write to; `environment` is complete, nothing is inherited.

    While a command runs its directory belongs to the sandbox: owner and mode may change, and the directory may be
    replaced by another with the same entries, so a caller reaches it by its path and not by a descriptor.
    """

    argv: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str] = {}
    limits: Limits = Limits()
