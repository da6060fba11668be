"""Hosts of which each may use a share of this host's CPU: control groups, where this user may make them."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.fleet.hosts import Host

_MOUNT = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000
_REMOVAL_SECONDS = 30.0


class Quotas:
    """Hosts with a quota each; processes whose names end with the same number share one."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._groups: dict[str, Path] = {}

    def host(self, name: str) -> Host:
        """Return the host of a gateway or worker, as `worker-1`; any other name is that of a host without a quota."""
        _, _, number = name.rpartition("-")
        if not number.isdigit():
            return Host(name)
        group = self._groups.setdefault(number, self._parent / number)
        group.mkdir(exist_ok=True)
        join = f'echo $$ > "{group}/cgroup.procs" && exec "$@"'
        return Host(name, prefix=(str(shutil.which("sh")), "-c", join, "sh"))

    def limit(self, cores: float) -> None:
        """Give each host so many cores from now on."""
        quota = int(cores * _PERIOD_MICROSECONDS)
        for group in self._groups.values():
            if (group / "cpu.max").exists():
                (group / "cpu.max").write_text(f"{quota} {_PERIOD_MICROSECONDS}")
            else:
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD_MICROSECONDS))
                (group / "cpu.cfs_quota_us").write_text(str(quota))


@contextmanager
def quotas() -> Iterator[Quotas | None]:
    """Make a place for such hosts, and remove it once their processes have ended; None if this user may not."""
    parent = _make_parent(f"geomill-bench-{os.getpid()}")
    try:
        yield None if parent is None else Quotas(parent)
    finally:
        if parent is not None:
            _remove(parent)


def _make_parent(name: str) -> Path | None:
    """Make the group below which those of hosts are made, in version 1 or 2."""
    for mount in (_MOUNT / "cpu", _MOUNT):
        parent = mount / name
        with suppress(OSError):
            parent.mkdir()
            with suppress(OSError):  # version 2 counts the CPU of groups only on request; version 1 has no such file
                for group in (mount, parent):
                    (group / "cgroup.subtree_control").write_text("+cpu")
            probe = parent / "probe"
            probe.mkdir()
            can_limit = (probe / "cpu.max").exists() or (probe / "cpu.cfs_quota_us").exists()
            probe.rmdir()
            if can_limit:
                return parent
            parent.rmdir()
    return None


def _remove(group: Path) -> None:
    """Remove a group once the last of its processes has ended."""
    give_up_at = time.monotonic() + _REMOVAL_SECONDS
    while time.monotonic() < give_up_at:
        for inner in group.glob("*/"):
            _remove(inner)
        try:
            group.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
