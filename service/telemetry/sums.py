"""The metrics of all processes that share a directory, added up sample by sample.

The library has a collector for this, which adds up everything at once and holds the interpreter meanwhile, in a thread
as well. This one lets its caller pause after each sample; the text is the same.
"""

import json
import mmap
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.mmap_dict import _read_all_values

from service.telemetry.lines import Piece, header, line, series

_READ: Final = Piece(1, "")
_MOST: Final = (["max"], ["livemax"])
_NEWEST: Final = (["mostrecent"], ["livemostrecent"])


class _Key(NamedTuple):
    """What a file says of a sample beside its value; `labels` are as in its line, without the bound of a bucket."""

    family: str
    documentation: str
    labels: str
    start: str
    bound: float | None


class _Family:
    """The values of a family by labels and key."""

    def __init__(self, kind: str, documentation: str) -> None:
        self.kind = kind
        self.documentation = documentation
        self.values: defaultdict[str, dict[str, float]] = defaultdict(dict)


class Sums:
    """The sums of what the files of a directory hold."""

    def __init__(self) -> None:
        self._families: dict[str, _Family] = {}
        self._times: dict[str, float] = {}

    def pieces(self, directory: Path) -> Iterator[Piece]:
        """Read all files, then yield the text."""
        for path in directory.glob("*.db"):
            yield from self._read(path)
        for name, family in self._families.items():
            yield Piece(0, header(name, family.kind, family.documentation))
            for labels, values in family.values.items():
                lines = _cumulated(name, labels, values) if family.kind == "histogram" else _plain(values)
                yield Piece(len(lines), "".join(lines))

    def _read(self, path: Path) -> Iterator[Piece]:
        kind, *mode, _ = path.stem.split("_")
        for key, value, timestamp in _entries(path):
            known = _known(key)
            family = self._families.get(known.family)
            if family is None:
                family = self._families[known.family] = _Family(kind, known.documentation)
            values = family.values[known.labels]
            if mode in _NEWEST:
                if timestamp > self._times.get(key, 0.0):
                    values[key], self._times[key] = value, timestamp
            else:
                values[key] = max(values.get(key, value), value) if mode in _MOST else values.get(key, 0.0) + value
            yield _READ


def _entries(path: Path) -> Iterator[tuple[str, float, float]]:
    """Each key, value and time of a file, without a copy of the whole file, which would take too long."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return  # the live gauges of a process that has ended meanwhile
    with file:
        used = int.from_bytes(file.read(4), sys.byteorder)
        if not used:
            return  # of a process that is starting
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for key, value, timestamp, _ in _read_all_values(data, used):
                yield key, value, timestamp


def _plain(values: Mapping[str, float]) -> list[str]:
    return [line(_known(key).start, value) for key, value in values.items()]


def _cumulated(name: str, labels: str, values: Mapping[str, float]) -> list[str]:
    """The sum of a histogram, its buckets, each with those below it, and its count."""
    buckets = sorted((known.bound, key) for key in values if (known := _known(key)).bound is not None)
    lines = _plain({key: value for key, value in values.items() if _known(key).bound is None})
    count = 0.0
    for _, key in buckets:
        count += values[key]
        lines.append(line(_known(key).start, count))
    return [*lines, line(f"{name}_count{labels}", count)]


@cache  # names and labels are from closed sets (`metrics`)
def _known(key: str) -> _Key:
    family, name, labels, documentation = json.loads(key)
    own = [(label, value) for label, value in labels.items() if label != "le"]
    bound = float(labels["le"]) if "le" in labels else None
    return _Key(family, documentation, series("", own), series(name, labels.items()), bound)
