"""Formats figures and goals for a terminal."""

from collections.abc import Iterator
from statistics import median

from bench.measure.figures import Figures, Latency
from bench.report.goals import GOALS
from bench.report.results import Parts, Results

_ROW = "{:16} {:>9} {:>9} {:>9} {:>9} {:>9}  {:>7} {:>7} {:>7}  {:>7} {:>7}  {:>5}"
_PERCENTILES = ("p50 ms", "p95 ms", "p99 ms", "p99.9 ms")
_HEADING = _ROW.format(
    "scenario", "req/s", *_PERCENTILES, "gateway", "postgr.", "conv.", "growth", "memory", "gen."
)  # fmt: skip
_LEGEND = (
    "CPU in ms per request by group, growth of the gateway and peak of all processes in MB, load generator in cores"
)


def heading() -> str:
    """The names of the columns."""
    return f"{_LEGEND}\n{_HEADING}"


def line(name: str, figures: Figures) -> str:
    """A scenario's line, and below it what went wrong or limits the figures."""
    cpu, memory = figures.cpu_ms or {}, figures.memory
    row = _ROW.format(
        name,
        f"{figures.rate:.1f}",
        *_latency(figures.latency_ms),
        *(f"{cpu[group]:.2f}" if group in cpu else "" for group in ("gateway", "postgres", "converters")),
        f"{memory.gateway_growth_mb:.1f}" if memory else "",
        f"{memory.all_peak_mb:.0f}" if memory else "",
        f"{figures.generator.core_share:.2f}",
    )
    return "\n    ".join([row, *_remarks(figures)])


def _latency(latency: Latency | None) -> tuple[str, str, str, str]:
    if latency is None:
        return ("", "", "", "")
    return (f"{latency.p50:.1f}", f"{latency.p95:.1f}", f"{latency.p99:.1f}", f"{latency.p999:.1f}")


def _remarks(figures: Figures) -> list[str]:
    remarks = [f"{kind}: {count} of {figures.requests}" for kind, count in figures.errors.items()]
    if figures.rates_until_drained != figures.rates:
        remarks.append(f"counted until the last answer: {median(figures.rates_until_drained):.1f} a second")
    if figures.error_latency_ms is not None:
        remarks.append(f"these: p50 {figures.error_latency_ms.p50:.1f} ms, p99 {figures.error_latency_ms.p99:.1f} ms")
    if figures.beside_ms is not None:
        remarks.append(f"beside: p50 {figures.beside_ms.p50:.1f} ms, p99 {figures.beside_ms.p99:.1f} ms")
    if figures.lag_ms is not None:
        remarks.append(f"event loop: late by p50 {figures.lag_ms.p50:.1f} ms, p99 {figures.lag_ms.p99:.1f} ms")
    if figures.generator.is_bottleneck:
        late = figures.generator.late_p99_ms
        remarks.append(f"the load generator itself limits this (sends late by {late:.1f} ms at the 99th percentile)")
    return remarks


def goals(results: Results, parts: Parts) -> Iterator[str]:
    """A line per goal that this run, or a part measured before, can judge."""
    for goal in GOALS:
        value = goal.value(results, parts)
        if value is not None:
            verdict = {True: "met", False: "MISSED", None: ""}[goal.is_met(value)]
            yield f"{goal.id:3} {goal.about:70} {goal.aim:18} {value:>10.3g} {goal.unit:3} {verdict}".rstrip()
