"""Exposition of the metrics: those of this process, or the sum over all processes that share a directory.

If PROMETHEUS_MULTIPROC_DIR is set, every process writes its metrics there and exposes the sum. When a process ends, its
counters stay in the sum; its live gauges, such as the number of converters, are removed.

The library's writer forms each line anew from its labels, which takes most of the time. Here the start of each line,
all but its value, is kept.
"""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
from anyio import to_thread
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, REGISTRY, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.utils import floatToGoString

from service.telemetry.shared_directory import has_number, shared_directory

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
OLD_SECONDS: Final = 1.0
"""How old metrics may be while the service has more to do than it can."""
TURN_SECONDS: Final = 0.001
"""How long the event loop may be busy with metrics before it serves requests; one family may take longer."""
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Exposition:
    """The metrics as text: written one family after another, between requests, and for one reader at a time."""

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
        if directory is not None:
            return await to_thread.run_sync(_sums, directory)
        text, since = [], time.perf_counter()
        for family in REGISTRY.collect():
            text.append(_text(family))
            if time.perf_counter() - since > TURN_SECONDS:
                await anyio.lowlevel.checkpoint()
                since = time.perf_counter()
        return "".join(text).encode()


def _text(family: Metric) -> str:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    lines = [f"# HELP {name} {family.documentation}\n# TYPE {name} {family.type}\n"]
    lines += [f"{_series(each.name, *each.labels.items())} {floatToGoString(each.value)}\n" for each in family.samples]
    return "".join(lines)


@lru_cache(maxsize=8192)
def _series(name: str, *labels: tuple[str, str]) -> str:
    """The name of a series with its labels, whose values are from closed sets and of few kinds (`metrics`)."""
    pairs = [f'{label}="{value.translate(_ESCAPES)}"' for label, value in sorted(labels)]
    return f"{name}{{{','.join(pairs)}}}" if pairs else name


def _sums(directory: Path) -> bytes:
    """The sums over all processes; reading their files takes longer than a turn of the event loop."""
    return "".join(map(_text, MultiProcessCollector(None, str(directory)).collect())).encode()


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
