"""The goals as rows: the ratio to measure, and its required range."""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import getitem
from statistics import median
from typing import Literal

import msgspec

from bench.report.results import OWN, Parts, Results

CONVERSIONS = ("burst-8", "burst-64", "burst-256")


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal: `measure` gives the value, or raises LookupError where the run does not have what it needs.

    One without a bound is no goal, but a figure that is shown beside them.
    """

    id: str
    about: str
    direction: Literal["at least", "at most"] = "at most"
    bound: float | None
    unit: str
    measure: Callable[[Results, Parts], float]

    @property
    def aim(self) -> str:
        """The required range, in words."""
        return "" if self.bound is None else f"{self.direction} {self.bound:g} {self.unit}"

    def value(self, results: Results, parts: Parts) -> float | None:
        """The measured value, None where it was not measured."""
        try:
            return round(self.measure(results, parts), 3)
        except LookupError:
            return None

    def is_met(self, value: float) -> bool | None:
        """Whether `value` is in the required range; None if there is none."""
        if self.bound is None:
            return None
        return value >= self.bound if self.direction == "at least" else value <= self.bound


def _rates(name: str, baseline: str) -> Callable[[Results, Parts], float]:
    return lambda results, _parts: ratio(results.scenarios[name].rates, results.scenarios[baseline].rates)


def _latencies(name: str, baseline: str) -> Callable[[Results, Parts], float]:
    return lambda results, _parts: ratio(results.scenarios[name].p50s, results.scenarios[baseline].p50s)


def _figure(name: str, group: str, figure: str) -> Callable[[Results, Parts], float]:
    return lambda results, _parts: _member(getattr(results.scenarios[name], group), figure)


def _part(name: str, *path: str) -> Callable[[Results, Parts], float]:
    return lambda _results, parts: reduce(getitem, path, parts[name])


def ratio(values: Sequence[float], others: Sequence[float]) -> float:
    """The median of the rounds' ratios."""
    pairs = [value / other for value, other in zip(values, others, strict=False) if other]
    if not pairs:
        raise LookupError("no round has both")
    return median(pairs)


def _member(record: msgspec.Struct | dict[str, float] | None, name: str) -> float:
    if record is None:
        raise LookupError(name)
    return record[name] if isinstance(record, dict) else float(getattr(record, name))


def _served_share(results: Results, _parts: Parts) -> float:
    """The share of the best rate that is served under overload."""
    found = [results.scenarios[name].rates for name in CONVERSIONS if name in results.scenarios]
    best = [max(rates) for rates in zip(*found, strict=False)]
    return ratio(results.scenarios["overload"].rates, best)


def _served_beside_generator(results: Results, parts: Parts) -> float:
    """The same, if the load generator took as much CPU at the best rate as under overload: it shares the cores."""
    if results.server != OWN:
        raise LookupError("the load generator does not share the cores of this server")
    share = _served_share(results, parts)
    taken = {name: figures.generator.core_share for name, figures in results.scenarios.items()}
    least = min(taken[name] for name in CONVERSIONS if name in taken)
    return share * (results.cores - least) / (results.cores - taken["overload"])


GOALS: tuple[Goal, ...] = (
    Goal(id="G1", about="small conversions, 8 at a time, beside xargs -P 2", direction="at least", bound=3, unit="x",
         measure=_rates("burst-8", "ogr2ogr-2")),
    Goal(id="G1", about="small conversions, 64 at a time, beside xargs -P 2", direction="at least", bound=3, unit="x",
         measure=_rates("burst-64", "ogr2ogr-2")),
    Goal(id="G2", about="p50 of one client beside one bare ogr2ogr", bound=0.6, unit="x",
         measure=_latencies("burst-1", "ogr2ogr-1")),
    Goal(id="G3", about="90 MB from upload to answer, beside bare ogr2ogr", bound=1.3, unit="x",
         measure=_latencies("size-90", "ogr2ogr-size-90")),
    Goal(id="G3", about="memory of all processes meanwhile", bound=300, unit="MB",
         measure=_figure("size-90", "memory", "all_peak_mb")),
    Goal(id="G4", about="growth of the gateway with 8 of 90 MB", bound=40, unit="MB",
         measure=_figure("large-uploads", "memory", "gateway_growth_mb")),
    Goal(id="G4", about="lag of the event loop meanwhile, p99", bound=10, unit="ms",
         measure=_figure("large-uploads", "lag_ms", "p99")),
    Goal(id="", about="GET /healthz meanwhile, p99, waiting for a core included", bound=None, unit="ms",
         measure=_figure("large-uploads", "beside_ms", "p99")),
    Goal(id="G4", about="CPU of receiving 8 of 90 MB, per GB", bound=1.5, unit="s",
         measure=_part("uploads", "/intake", "cpuSecondsPerGb")),
    Goal(id="G4", about="rate of receiving beside plain discarding", direction="at least", bound=0.8, unit="x",
         measure=lambda _results, parts: parts["uploads"]["/intake"]["mbPerSecond"]
         / parts["uploads"]["plain /discard"]["mbPerSecond"]),
    Goal(id="G5", about="one hot account beside the plain row lock, 4 ms commits", direction="at least", bound=30,
         unit="x", measure=_part("admissions", "4 ms", "hotRatioToRowLock")),
    Goal(id="G5", about="conversions of one hot account beside 64 accounts", direction="at least", bound=0.95, unit="x",
         measure=_rates("burst-64", "many-accounts")),
    Goal(id="G6", about="served at 10 times the best rate, of the best", direction="at least", bound=0.9, unit="x",
         measure=_served_share),
    Goal(id="G6", about="the same, of the CPU that the load generator leaves", bound=None, unit="x",
         measure=_served_beside_generator),
    Goal(id="G6", about="refusals meanwhile, p99", bound=50, unit="ms",
         measure=_figure("overload", "error_latency_ms", "p99")),
    Goal(id="G7", about="status with a million jobs, p99", bound=2, unit="x",
         measure=_part("history", "status", "1000000", "p99Ratio")),
    Goal(id="G7", about="recent jobs with a million jobs, p99", bound=2, unit="x",
         measure=_part("history", "list", "1000000", "p99Ratio")),
    Goal(id="G7", about="admission with a million accounts, p50", bound=1.25, unit="x",
         measure=lambda _results, parts: parts["history"]["admission"]["1000000"]["p50Ms"]
         / parts["history"]["admission"]["10"]["p50Ms"]),
    Goal(id="G8", about="CPU of the analysis of 100 MB beside bare ogr2ogr", bound=0.25, unit="x",
         measure=_part("analyze", "points", "cpuRatio")),
    Goal(id="G8", about="memory of the analysis", bound=140, unit="MB",
         measure=_part("analyze", "points", "analysis", "peakMb")),
    Goal(id="G9", about="gateway's CPU of a small conversion", bound=0.6, unit="ms",
         measure=_figure("burst-8", "cpu_ms", "gateway")),
    Goal(id="G9", about="gateway's CPU of a poll", bound=0.5, unit="ms",
         measure=_figure("polling", "cpu_ms", "gateway")),
    Goal(id="G9", about="descriptors left by 300 refused uploads of 4 MB", bound=4, unit="",
         measure=_figure("refused-uploads", "memory", "descriptors_left")),
    Goal(id="G9", about="growth of the gateway with them", bound=40, unit="MB",
         measure=_figure("refused-uploads", "memory", "gateway_growth_mb")),
)  # fmt: skip
