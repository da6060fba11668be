"""Counts what a test calls: a measure of work that no busy host changes."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple


class Calls(NamedTuple):
    """How often functions were called, by their qualified names, such as `str.replace`."""

    python: Counter[str]
    c: Counter[str]


@contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count the calls of this thread in the block."""
    calls = Calls(Counter(), Counter())

    def count(frame: FrameType, event: str, called: object) -> None:
        if event == "call":
            calls.python[frame.f_code.co_qualname] += 1
        elif event == "c_call":
            calls.c[getattr(called, "__qualname__", "")] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
