"""The plots of the report: throughput and latency, and what grows with clients, sizes and history."""

import math
from collections.abc import Iterator, Mapping

from bench.figures import Figures
from bench.results import Parts
from bench.svg import Axis, bars, lines, log_axis

BURSTS = {1: "burst-1", 8: "burst-8", 64: "burst-64", 256: "burst-256"}
SIZES = {1: "size-1", 10: "size-10", 90: "size-90"}
PERCENTILES = {0.0: "p0", 0.301: "p50", 1.0: "p90", 2.0: "p99", 3.0: "p99.9"}
"""Places on an axis of nines: p90 is one nine, p99 are two."""
MOST_NINES = 4.0
FULL = 100.0


def plots(found: Mapping[str, Figures], parts: Parts) -> Iterator[str]:
    """Every plot for which there are figures."""
    bursts = {clients: found[name] for clients, name in BURSTS.items() if name in found}
    if bursts:
        yield _throughput(bursts, found)
        yield _latency_by_clients(bursts)
        yield _latency_curves({name: found[name] for name in (*BURSTS.values(), "steady", "overload") if name in found})
    if sizes := {size: found[name] for size, name in SIZES.items() if name in found}:
        yield _by_size(sizes, found)
    if history := parts.get("history"):
        yield _by_history(history)
    yield _cpu(found)


def _clients_axis() -> Axis:
    ticks = {float(clients): str(clients) for clients in BURSTS}
    return Axis(title="clients", low=1, high=256, log=True, ticks=ticks)


def _throughput(bursts: Mapping[int, Figures], found: Mapping[str, Figures]) -> str:
    series = {"small conversions": [(clients, figures.rate) for clients, figures in bursts.items()]}
    if "ogr2ogr-2" in found:
        series["xargs -P 2 over ogr2ogr"] = [(clients, found["ogr2ogr-2"].rate) for clients in (1, 256)]
    most = max(rate for points in series.values() for _, rate in points)
    up = Axis(title="conversions per second", low=0, high=most * 1.1)
    return lines("Throughput", _clients_axis(), up, series)


def _latency_by_clients(bursts: Mapping[int, Figures]) -> str:
    timed = {clients: figures.latency_ms for clients, figures in bursts.items() if figures.latency_ms}
    series = {
        "p50": [(clients, latency.p50) for clients, latency in timed.items()],
        "p99": [(clients, latency.p99) for clients, latency in timed.items()],
        "p99.9": [(clients, latency.p999) for clients, latency in timed.items()],
    }
    values = [value for points in series.values() for _, value in points]
    return lines("Latency by clients", _clients_axis(), log_axis("ms", values), series)


def _latency_curves(found: Mapping[str, Figures]) -> str:
    timed = {name: figures.latency_ms for name, figures in found.items() if figures.latency_ms}
    series = {name: [(_nines(share), ms) for share, ms in latency.curve] for name, latency in timed.items()}
    across = Axis(title="percentile", low=0, high=MOST_NINES, ticks=PERCENTILES)
    values = [value for points in series.values() for _, value in points]
    return lines("Latency by percentile", across, log_axis("ms", values), series)


def _nines(share: float) -> float:
    return MOST_NINES if share >= FULL else -math.log10(1 - share / FULL)


def _by_size(sizes: Mapping[int, Figures], found: Mapping[str, Figures]) -> str:
    across = Axis(title="MB", low=1, high=100, log=True, ticks={1: "1", 10: "10", 90: "90"})
    bare = {size: found[f"ogr2ogr-size-{size}"] for size in sizes if f"ogr2ogr-size-{size}" in found}
    series = {"from upload to answer": _p50s(sizes), "bare ogr2ogr": _p50s(bare)}
    values = [value for points in series.values() for _, value in points]
    return lines("Time by size of the file", across, log_axis("ms", values), series)


def _p50s(found: Mapping[int, Figures]) -> list[tuple[float, float]]:
    return [(size, figures.latency_ms.p50) for size, figures in found.items() if figures.latency_ms]


def _by_history(history: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    kinds = [kind for kind in ("status", "list", "admission") if kind in history]
    series = {kind: [(float(size), at["p50Ms"]) for size, at in history[kind].items()] for kind in kinds}
    sizes = [size for points in series.values() for size, _ in points]
    across = Axis(title="accounts and ended jobs", low=min(sizes), high=max(sizes), log=True)
    most = max(value for points in series.values() for _, value in points)
    return lines("Database time (p50) by history", across, Axis(title="ms", low=0, high=most * 1.2), series)


def _cpu(found: Mapping[str, Figures]) -> str:
    shown = {name: figures.cpu_ms for name, figures in found.items() if figures.cpu_ms and not _is_large(name)}
    groups = ("gateway", "postgres", "converters")
    split = {name: {group: cpu[group] for group in groups if group in cpu} for name, cpu in shown.items()}
    return bars("CPU per request", "ms", split)


def _is_large(name: str) -> bool:
    return "size" in name or name in {"mixed", "large-uploads"}
