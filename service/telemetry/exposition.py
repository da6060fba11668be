"""Exposition of the metrics: those of this process, or the sum over all processes that share a directory.

If PROMETHEUS_MULTIPROC_DIR is set, every process writes its metrics there and exposes the sum. When a process ends, its
counters stay in the sum; its live gauges, such as the number of converters, are removed.
"""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from anyio import to_thread
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from service.telemetry.shared_directory import has_number, shared_directory

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
OLD_SECONDS: Final = 1.0
"""How old metrics may be while the service has more to do than it can."""


class Exposition:
    """The metrics as text, which takes up to 10 ms to produce, in the event loop if they are those of this process."""

    def __init__(self) -> None:
        self._latest = b""
        self._latest_at = -math.inf

    async def text(self, *, may_be_old: bool) -> bytes:
        """Return every metric in the text format of Prometheus, as of now or, if allowed, of the last second."""
        if not may_be_old or time.monotonic() - self._latest_at > OLD_SECONDS:
            self._latest = _text() if shared_directory() is None else await to_thread.run_sync(_text)
            self._latest_at = time.monotonic()
        return self._latest


def _text() -> bytes:
    if shared_directory() is None:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)


@contextmanager
def sharing_metrics() -> Iterator[None]:
    """Remove the live gauges of killed processes now, and those of this process at the end of the block."""
    directory = shared_directory()
    if directory is None or has_number():
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
