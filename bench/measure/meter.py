"""What a server's processes use: CPU time, memory and descriptors, split into gateway, PostgreSQL and converters."""

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec
import psutil

MEGABYTE = 1_000_000
GATEWAY, POSTGRES, CONVERTERS = "gateway", "postgres", "converters"
SAMPLE_SECONDS = 0.25
SAMPLES_PER_WALK = 6
"""A walk through the pages of all processes takes 20 ms of a processor, which those it measures then lack."""
SETTLE_SECONDS = 3.0
FEW_DESCRIPTORS = 4

Seconds: TypeAlias = dict[str, float]


class Usage(msgspec.Struct, kw_only=True):
    """What a server used while it was measured; filled in at the end."""

    cpu_seconds: Seconds = {}
    gateway_before_mb: float = 0.0
    gateway_peak_mb: float = 0.0
    all_peak_mb: float = 0.0
    descriptors_left: int | None = None
    """None where the kernel hides them: from everybody but root, if it hides the process."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a server's processes hold at one moment."""

    gateway_mb: float
    anonymous_mb: float
    processes: int
    threads: int
    descriptors: int | None
    connections: int | None
    """Both None where the kernel hides them."""


class Meter:
    """Measures the processes of the server `pid` on this host, its embedded database below `data_dir` included."""

    def __init__(self, pid: int, data_dir: Path | None) -> None:
        self._gateway = psutil.Process(pid)
        self._data_dir = data_dir.resolve() if data_dir else None
        self._postmaster: psutil.Process | None = None

    @contextmanager
    def measuring(self, *, settled: bool) -> Iterator[Usage]:
        """Measure while the block runs; with `settled`, descriptors only once connections that ended are closed."""
        usage = Usage(gateway_before_mb=self._gateway.memory_info().rss / MEGABYTE)
        before, descriptors = self._cpu_seconds(), self._descriptors()
        stop = threading.Event()
        sampler = threading.Thread(target=self._sample, args=(usage, stop))
        sampler.start()
        try:
            yield usage
        finally:
            stop.set()
            sampler.join()
            after = self._cpu_seconds()
            usage.cpu_seconds = {group: after[group] - before[group] for group in after}
            if descriptors is not None:
                self._settle(descriptors, SETTLE_SECONDS if settled else 0.0)
                left = self._descriptors()
                usage.descriptors_left = None if left is None else left - descriptors

    def snapshot(self) -> Snapshot:
        """Look at every process once; threads, descriptors and connections are the gateway's.

        `anonymous_mb` is what processes have asked for, without shared memory and without files that are mapped: a
        database's buffers fill up to the size that they are given, and that is no growth.
        """
        anonymous, processes = 0, self._processes()
        for _, process in processes:
            anonymous += _sizes_of(process).get("Pss_Anon", 0)
        return Snapshot(
            gateway_mb=self._gateway.memory_info().rss / MEGABYTE,
            anonymous_mb=anonymous / MEGABYTE,
            processes=len(processes),
            threads=self._gateway.num_threads(),
            descriptors=self._descriptors(),
            connections=self._connections(),
        )

    def _processes(self) -> list[tuple[str, psutil.Process]]:
        """Return all processes of the server, with their groups."""
        below = self._gateway.children(recursive=True)
        found = {process.pid: (_group(process), process) for process in below}
        if (postmaster := self._find_postmaster()) is not None:
            family = [postmaster, *postmaster.children(recursive=True)]
            found |= {process.pid: (POSTGRES, process) for process in family}
        return [(GATEWAY, self._gateway), *found.values()]

    def _find_postmaster(self) -> psutil.Process | None:
        """The embedded database, identified by its directory because it is not a child of the server."""
        if self._data_dir is not None and (self._postmaster is None or not self._postmaster.is_running()):
            found = [process for process in psutil.process_iter() if _is_database(process, self._data_dir)]
            self._postmaster = min(found, key=psutil.Process.create_time, default=None)
        return self._postmaster

    def _cpu_seconds(self) -> Seconds:
        """CPU time so far by group; that of ended processes is taken from their parents."""
        total = {GATEWAY: 0.0, POSTGRES: 0.0, CONVERTERS: 0.0}
        for group, process in self._processes():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total[group] += times.user + times.system
                total[CONVERTERS if group == GATEWAY else group] += times.children_user + times.children_system
        return total

    def _sample(self, usage: Usage, stop: threading.Event) -> None:
        for number in itertools.count():
            if stop.wait(SAMPLE_SECONDS):
                return
            with suppress(psutil.NoSuchProcess):
                usage.gateway_peak_mb = max(usage.gateway_peak_mb, self._gateway.memory_info().rss / MEGABYTE)
                if number % SAMPLES_PER_WALK == 0:
                    usage.all_peak_mb = max(usage.all_peak_mb, self._proportional_mb())

    def _proportional_mb(self) -> float:
        """Memory of all processes together, a shared page counted once."""
        return sum(_sizes_of(process).get("Pss", 0) for _, process in self._processes()) / MEGABYTE

    def _descriptors(self) -> int | None:
        with suppress(psutil.AccessDenied):
            return self._gateway.num_fds()
        return None

    def _connections(self) -> int | None:
        with suppress(psutil.AccessDenied):
            return len(self._gateway.net_connections("tcp"))
        return None

    def _settle(self, before: int, patience: float) -> None:
        give_up_at = time.monotonic() + patience
        while (self._descriptors() or 0) > before + FEW_DESCRIPTORS and time.monotonic() < give_up_at:
            time.sleep(SAMPLE_SECONDS)


def _group(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        if "--member" in process.cmdline():  # one of several serving processes
            return GATEWAY
        return POSTGRES if process.name() == "postgres" else CONVERTERS
    return CONVERTERS


def _is_database(process: psutil.Process, data_dir: Path) -> bool:
    with suppress(psutil.Error):
        return process.name() == "postgres" and data_dir in Path(process.cwd()).parents
    return False


def _sizes_of(process: psutil.Process) -> dict[str, int]:
    """Bytes of a process by the kernel's names for them; empty if it has ended, or is another user's."""
    with suppress(psutil.NoSuchProcess, OSError):
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
        return {name.removesuffix(":"): int(size) * 1024 for name, size, *_ in map(str.split, lines)}
    return {}


def load_average() -> float:
    """Processes that wanted to run over the last minute; above the number of cores, others were measured too."""
    return round(os.getloadavg()[0], 2)
