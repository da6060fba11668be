"""A counter and a histogram that count without asking each time whether they have their labels and an exemplar.

The histogram also writes its own lines, one set of labels after another. Most lines of `/metrics` are buckets. The
library makes a record of each, joins its labels and forms the line from them; here a set of labels keeps the form of
its lines, so that only the values are written.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Self, cast

import prometheus_client
from prometheus_client.utils import floatToGoString

from service.telemetry.lines import Piece, header, series


class Counter(prometheus_client.Counter):
    """The library's counter, which has no exemplars here."""

    def inc(self, amount: float = 1) -> None:  # type: ignore[override] # see above
        """Add `amount`, which is not negative."""
        self._value.inc(amount)


class Histogram(prometheus_client.Histogram):
    """The library's histogram, with another writer of the same text."""

    def observe(self, amount: float, exemplar: Mapping[str, str] | None = None) -> None:  # noqa: ARG002 - theirs
        """Observe an amount; there are no exemplars here."""
        self._sum.inc(amount)
        self._buckets[bisect_left(self._upper_bounds, amount)].inc(1)

    def pieces(self) -> Iterator[Piece]:
        """Yield the text of this family: its header, then the samples of each set of labels."""
        yield Piece(0, header(self._name, self._type, self._documentation))
        for each in self._sets():
            yield each.piece()

    def piece(self) -> Piece:
        """Return the samples of one set of labels."""
        counts = [*accumulate(bucket.get() for bucket in self._buckets)]
        values = [floatToGoString(value) for value in (*counts, counts[-1], self._sum.get())]
        return Piece(len(values), self._form % tuple(values))

    def _sets(self) -> Iterable[Self]:
        if not self._labelnames:
            return [self]
        with self._lock:
            return cast("list[Self]", list(self._metrics.values()))

    def _metric_init(self) -> None:
        super()._metric_init()
        labels = [*zip(self._labelnames, self._labelvalues, strict=True)]
        bounds = [[*labels, ("le", floatToGoString(bound))] for bound in self._upper_bounds]
        buckets = [series(f"{self._name}_bucket", each) for each in bounds]
        rest = [series(f"{self._name}{suffix}", labels) for suffix in ("_count", "_sum")]
        self._form = "".join(f"{each.replace('%', '%%')} %s\n" for each in (*buckets, *rest))
