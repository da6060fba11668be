"""Counts times whose zone the converter changes or drops. Runs in the sandbox.

The converter has zones in quarters of an hour.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path

ODD_TIME = re.compile(rb":\d\d(?::\d\d(?:\.\d{1,20})?)?[-+]\d\d:?(?!00|15|30|45)[0-5]\d(?!\d)")
"""From the minutes on: files have few colons beside all the digits with which dates begin."""
HOUR = re.compile(rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d")
"""What is before them. Without its date, the hours of a shop look the same: 08:00-18:20."""
HOUR_BYTES = 13
CHUNK = 1 << 20
LONGEST = 64
"""More bytes than such a time takes."""


def main(*files: str) -> int:
    """Return how many such times all `files` contain."""
    return count_odd_times(map(Path, files))


def count_odd_times(files: Iterable[Path]) -> int:
    """How many times in other zones the bytes of `files` contain."""
    return sum(map(_count, files))


def _count(path: Path) -> int:
    found, rest, begin = 0, b"", 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            text = rest + chunk
            end = max(len(text) - LONGEST, begin)  # what begins later may go on in the next chunk
            found += _count_between(text, begin, end)
            kept = max(end - HOUR_BYTES, 0)
            rest, begin = text[kept:], end - kept
    return found + _count_between(rest, begin, len(rest))


def _count_between(text: bytes, begin: int, end: int) -> int:
    """How many such times `text` contains whose minutes begin from `begin` to before `end`."""
    starts = takewhile(lambda start: start < end, (match.start() for match in ODD_TIME.finditer(text, begin)))
    return sum(HOUR.fullmatch(text, max(start - HOUR_BYTES, 0), start) is not None for start in starts)
