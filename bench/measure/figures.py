"""Computes the figures of a scenario from its rounds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from statistics import median

import msgspec

from bench.load.load import OK, LoadTally
from bench.measure.lag import Lag, lag_of
from bench.measure.meter import Usage

FULL_CORE = 0.85
"""The generator has one thread: above this share of a core it may limit the rate itself."""
LATE_MS = 20.0
"""Arrivals that the generator sends later than this are its own delay."""


class Latency(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Milliseconds at percentiles."""

    p50: float
    p95: float
    p99: float
    p999: float


class MemoryFigures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Megabytes of the gateway, and of all processes together with shared pages counted once."""

    gateway_before_mb: float
    gateway_growth_mb: float
    all_peak_mb: float
    descriptors_left: int


class Generator(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The CPU time and delay of the load generator."""

    core_share: float
    late_p99_ms: float
    is_bottleneck: bool


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One round of a scenario as it was measured; `lag` is how often the server's loop was how late, if it tells."""

    tally: LoadTally
    usage: Usage | None
    generator_seconds: float
    beside: LoadTally | None = None
    lag: Mapping[float, float] | None = None

    @property
    def done(self) -> int:
        """How many requests had the expected outcome."""
        return len(self.tally.seconds_by_kind[OK])

    @property
    def rate(self) -> float:
        """Successful requests per second; for a load with a fixed rate of arrivals, counted while it lasts."""
        window = self.tally.window_seconds
        return self.tally.done_in_window / window if window else self.rate_until_drained

    @property
    def rate_until_drained(self) -> float:
        """Those per second until the last answer: what waits when the load ends makes it look better."""
        return self.done / self.tally.elapsed_seconds

    @property
    def requests(self) -> int:
        """How many requests received a response or failed."""
        return sum(map(len, self.tally.seconds_by_kind.values()))


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A scenario's figures: medians over its rounds, latencies over all requests of all rounds."""

    about: str
    requests: int
    rate: float
    rates: tuple[float, ...]
    rates_until_drained: tuple[float, ...] = ()
    p50s: tuple[float, ...]
    latency_ms: Latency | None
    errors: dict[str, int]
    error_latency_ms: Latency | None
    cpu_ms: dict[str, float] | None
    memory: MemoryFigures | None
    generator: Generator
    beside_ms: Latency | None
    lag_ms: Lag | None = None


def figures_of(about: str, rounds: Sequence[Round]) -> Figures:
    """Return the figures of a scenario's rounds."""
    tallies = [each.tally for each in rounds]
    return Figures(
        about=about,
        requests=sum(each.requests for each in rounds),
        rate=round(median(each.rate for each in rounds), 2),
        rates=tuple(round(each.rate, 3) for each in rounds),
        rates_until_drained=tuple(round(each.rate_until_drained, 3) for each in rounds),
        p50s=tuple(round(1000 * median(each.tally.seconds_by_kind[OK]), 3) for each in rounds if each.done),
        latency_ms=_latency(tallies, lambda kind: kind == OK),
        errors=_sum_errors(tallies),
        error_latency_ms=_latency(tallies, lambda kind: kind != OK),
        cpu_ms=_cpu_ms(rounds),
        memory=_memory([each.usage for each in rounds if each.usage is not None and each.usage.all_peak_mb]),
        generator=_generator(rounds),
        beside_ms=_latency([each.beside for each in rounds if each.beside is not None], lambda _kind: True),
        lag_ms=lag_of(each.lag for each in rounds),
    )


def medians(rounds: Sequence[Mapping[str, float]], digits: int = 2) -> dict[str, float]:
    """The median of each figure over several rounds."""
    return {name: round(median(figures[name] for figures in rounds), digits) for name in rounds[0]}


def percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank percentile of ordered values."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))]


def latency_of(seconds: Iterable[float]) -> Latency | None:
    """The latency of requests with these durations in seconds; None without any."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    p50, p95, p99, p999 = (round(1000 * percentile(ordered, share), 3) for share in (50, 95, 99, 99.9))
    return Latency(p50=p50, p95=p95, p99=p99, p999=p999)


def _latency(tallies: Sequence[LoadTally], counts: Callable[[str], bool]) -> Latency | None:
    kinds = (tally.seconds_by_kind.items() for tally in tallies)
    return latency_of(chain.from_iterable(seconds for kind, seconds in chain(*kinds) if counts(kind)))


def _sum_errors(tallies: Sequence[LoadTally]) -> dict[str, int]:
    kinds = sorted({kind for tally in tallies for kind in tally.errors})
    return {kind: sum(tally.errors.get(kind, 0) for tally in tallies) for kind in kinds}


def _cpu_ms(rounds: Sequence[Round]) -> dict[str, float] | None:
    used = [(each.usage.cpu_seconds, each.requests) for each in rounds if each.usage is not None and each.requests]
    if not used:
        return None
    groups = used[0][0]
    split = {group: round(median(1000 * cpu[group] / count for cpu, count in used), 3) for group in groups}
    return {**split, "all": round(median(1000 * sum(cpu.values()) / count for cpu, count in used), 3)}


def _memory(usages: Sequence[Usage]) -> MemoryFigures | None:
    if not usages:
        return None
    return MemoryFigures(
        gateway_before_mb=round(usages[0].gateway_before_mb, 1),
        gateway_growth_mb=round(median(usage.gateway_peak_mb - usage.gateway_before_mb for usage in usages), 1),
        all_peak_mb=round(median(usage.all_peak_mb for usage in usages), 1),
        descriptors_left=max(usage.descriptors_left or 0 for usage in usages),
    )


def _generator(rounds: Sequence[Round]) -> Generator:
    share = median(each.generator_seconds / each.tally.elapsed_seconds for each in rounds)
    late = latency_of(chain.from_iterable(each.tally.late_seconds for each in rounds))
    late_ms = late.p99 if late else 0.0
    return Generator(
        core_share=round(share, 3),
        late_p99_ms=round(late_ms, 2),
        is_bottleneck=share >= FULL_CORE or late_ms >= LATE_MS,
    )
