"""How many cores this process may use: those of the host, of its CPU set, and what its control groups leave."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROCESS: Final = Path("/proc/self/cgroup")
_MOUNT: Final = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores, at least 1; a quota of one and a half cores counts as two."""
    return usable_cores(_host_cores(), _PROCESS, _MOUNT)


def usable_cores(host: int, process: Path, mount: Path) -> int:
    """Return how many of `host` cores the quotas leave of the groups that the file `process` names below `mount`."""
    return max(1, math.ceil(min([host, *_quotas(process, mount)])))


def _host_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(process: Path, mount: Path) -> Iterator[float]:
    """Yield the quota, in cores, of each group that contains this process; the directories above count as well."""
    with suppress(OSError):
        for line in process.read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = mount / controllers if controllers else mount
            own = root / path.lstrip("/")
            for group in (own, *own.parents):
                if group.is_relative_to(root):
                    yield from _quota_of(group)


def _quota_of(group: Path) -> Iterator[float]:
    """Yield the quota of one group, if it has one: version 2 in one file, version 1 in two."""
    with suppress(OSError, ValueError):
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        yield int(quota) / int(period)
    with suppress(OSError, ValueError):
        quota = (group / "cpu.cfs_quota_us").read_text(encoding="ascii")
        if int(quota) > 0:
            yield int(quota) / int((group / "cpu.cfs_period_us").read_text(encoding="ascii"))
