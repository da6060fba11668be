"""The lag of a server's event loop over a time, from the histogram in its metrics.

The histogram is read twice. The lag is reported only if both readings come from the same processes: those that share a
port but not their metrics each report only their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from bench.load.client import Address, connect, get

METRIC = "geomill_event_loop_lag_seconds_bucket"
_IDENTITY = "process_start_time_seconds"
_OK = 200


class Lag(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Milliseconds at percentiles, as exact as the histogram's buckets are narrow."""

    p50: float
    p99: float


class LagReading(msgspec.Struct, frozen=True, kw_only=True):
    """How often the loop was at most so many seconds late, and which process says so."""

    at_most: Mapping[float, float]
    process: float | None

    def since(self, earlier: "LagReading") -> Mapping[float, float] | None:
        """What was added since; None if the earlier reading is from another process."""
        if self.process != earlier.process or self.at_most.keys() != earlier.at_most.keys():
            return None
        added = {bound: count - earlier.at_most[bound] for bound, count in self.at_most.items()}
        counts = list(added.values())
        return added if counts[0] >= 0 and all(low <= high for low, high in pairwise(counts)) else None


async def read_lag(address: Address, prefix: str) -> LagReading | None:
    """Read the histogram of the server at `address`; None if there is none."""
    connection = await connect(address)
    try:
        answer = await connection.request(get(address, f"{prefix}/metrics", {}))
    finally:
        connection.close()
    return reading_of(answer.body.decode(errors="replace")) if answer.status == _OK else None


def reading_of(metrics: str) -> LagReading | None:
    """The histogram in metrics in the text format of Prometheus; None if it is missing."""
    try:
        samples = [sample for family in text_string_to_metric_families(metrics) for sample in family.samples]
    except ValueError:
        return None
    buckets = sorted((float(sample.labels["le"]), sample.value) for sample in samples if sample.name == METRIC)
    identity = next((sample.value for sample in samples if sample.name == _IDENTITY), None)
    return LagReading(at_most=dict(buckets), process=identity) if buckets else None


def lag_of(rounds: Iterable[Mapping[float, float] | None]) -> Lag | None:
    """The lag over several rounds together; None without observations."""
    seen = [each for each in rounds if each is not None]
    if not seen:
        return None
    at_most = [(bound, sum(each.get(bound, 0.0) for each in seen)) for bound in seen[0]]
    if not at_most[-1][1]:
        return None
    return Lag(p50=_milliseconds(at_most, 0.5), p99=_milliseconds(at_most, 0.99))


def _milliseconds(at_most: Sequence[tuple[float, float]], share: float) -> float:
    """The percentile, evenly spread in its bucket; above the last bound it is that bound, as Prometheus has it."""
    rank = share * at_most[-1][1]
    for (low, below), (high, up_to) in pairwise([(0.0, 0.0), *at_most[:-1]]):
        if up_to >= rank:
            return round(1000 * (low + (high - low) * (rank - below) / (up_to - below)), 2)
    return 1000 * at_most[-2][0]
