"""Exposition of the metrics: those of this process, or the sum over all processes that share a directory.

If PROMETHEUS_MULTIPROC_DIR is set, every process writes its metrics there and exposes the sum. When a process ends, its
counters stay in the sum; its live gauges, such as the number of converters, are removed.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from service.telemetry.shared_directory import shared_directory

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4


def exposition() -> bytes:
    """Return every metric in the text format of Prometheus."""
    if shared_directory() is None:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)


@contextmanager
def sharing_metrics() -> Iterator[None]:
    """Remove the live gauges of killed processes now, and those of this process at the end of the block."""
    directory = shared_directory()
    if directory is None:
        yield
        return
    for pid in _dead_processes(directory):
        mark_process_dead(pid)
    try:
        yield
    finally:
        mark_process_dead(os.getpid())


def _dead_processes(directory: Path) -> set[int]:
    pids = {int(path.stem.rpartition("_")[2]) for path in directory.glob("gauge_live*_*.db")}
    return {pid for pid in pids if not _is_alive(pid)}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it belongs to another user
    return True
