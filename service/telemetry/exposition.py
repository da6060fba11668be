"""Exposition of the metrics: those of this process, or the sum over all processes that share a directory.

If PROMETHEUS_MULTIPROC_DIR is set, every process writes its metrics there and exposes the sum. When a process ends, its
counters stay in the sum; its live gauges, such as the number of converters, are removed.

The text is written between requests: after a number of samples, the event loop serves them.
"""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR
from prometheus_client.multiprocess import mark_process_dead

from service.telemetry import metrics
from service.telemetry.instruments import Histogram
from service.telemetry.lines import Piece, whole
from service.telemetry.shared_directory import has_number, shared_directory
from service.telemetry.sums import Sums

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
OLD_SECONDS: Final = 1.0
"""How old metrics may be while the service has more to do than it can."""
TURN_SAMPLES: Final = 300
"""How many samples are read or written before requests are served: less than a millisecond."""
_COLLECTORS: Final = (GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, *metrics.FAMILIES)


class Exposition:
    """The metrics as text: written between requests, for one reader at a time."""

    def __init__(self) -> None:
        self._one = anyio.Lock(fast_acquire=True)
        self._latest = b""
        self._latest_at = -math.inf

    async def text(self, *, may_be_old: bool) -> bytes:
        """Return every metric in the text format of Prometheus, as of now or, if allowed, of the last second."""
        async with self._one:
            if not may_be_old or time.monotonic() - self._latest_at > OLD_SECONDS:
                self._latest = await self._now()
                self._latest_at = time.monotonic()
            return self._latest

    async def _now(self) -> bytes:
        directory = shared_directory()
        text, samples = [], 0
        for piece in Sums().pieces(directory) if directory is not None else _own():
            text.append(piece.text)
            samples += piece.samples
            if samples >= TURN_SAMPLES:
                await anyio.lowlevel.checkpoint()
                samples = 0
        return "".join(text).encode()


def _own() -> Iterator[Piece]:
    """The metrics of this process, in the library's order."""
    for each in _COLLECTORS:
        yield from each.pieces() if isinstance(each, Histogram) else map(whole, each.collect())


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
