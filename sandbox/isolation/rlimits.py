"""Resource limits of the process: memory, processor time, file size, descriptors, no core."""

import os
import resource
import struct
from collections.abc import Sequence
from functools import lru_cache

from sandbox.command import Limits
from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps
from sandbox.report import Guard

# The soft limit sends SIGXCPU, which identifies the ending; the hard limit kills a program that ignores it.
_CPU_GRACE_SECONDS = 2
_ALL = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


def of(limits: Limits) -> tuple[tuple[int, int, int], ...]:
    """The limits as (resource, soft, hard)."""
    return (
        (resource.RLIMIT_AS, limits.memory_bytes, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + _CPU_GRACE_SECONDS),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_CORE, 0, 0),
    )


def of_this_process() -> Sequence[tuple[int, int]]:
    """Every limit of the calling process, as (soft, hard)."""
    return [resource.getrlimit(name) for name in _ALL]


class ResourceLimits:
    """Kernel limits on one process."""

    name = "resource limits"
    stops = "endless loops, excessive memory use, endless files, too many descriptors"
    guards = frozenset({Guard.LIMITS})

    def probe(self) -> None:
        """Check that a descriptor limit refuses one more descriptor."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        try:
            descriptor = os.dup(0)
        except OSError:
            return
        os.close(descriptor)
        raise OSError("limits have no effect")

    def steps(self, jail: Jail) -> bytes:
        """Lower the limits."""
        return _steps(self.name, jail.limits)


@lru_cache
def _steps(layer: str, limits: Limits) -> bytes:
    steps = Steps(layer)
    for name, soft, hard in of(limits):
        # Every child inherits the limit of this process.
        _, ceiling = resource.getrlimit(name)
        most = max(soft, hard) if ceiling == resource.RLIM_INFINITY else ceiling
        steps.call("prlimit64", 0, name, struct.pack("=QQ", min(soft, most), min(hard, most)), 0)
    return steps.packed()
