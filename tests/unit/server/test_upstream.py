"""Internals of Hypercorn and h11 that the server relies on are as they were when this was written.

A row that fails says what has changed upstream: read that, bring the server in line, and put the new mark here.
"""

import hashlib
import inspect
from collections.abc import Callable

import h11._readers
import h11._receivebuffer
import pytest
from hypercorn.asyncio.lifespan import Lifespan

LEANED_ON: dict[str, tuple[Callable[..., object], str]] = {
    "h11._readers.ChunkedReader": (h11._readers.ChunkedReader, "4d2629eeaaf366b6"),
    "h11._readers.ContentLengthReader": (h11._readers.ContentLengthReader, "fdf438f5ca7e0d9d"),
    "h11._receivebuffer.ReceiveBuffer": (h11._receivebuffer.ReceiveBuffer, "108c4355eb3b1717"),
    "hypercorn.asyncio.lifespan.Lifespan": (Lifespan, "164b3fdbe941195d"),
}


@pytest.mark.parametrize("name", LEANED_ON)
def test_what_is_leaned_on_is_as_it_was(name: str) -> None:
    """Its source has the recorded hash."""
    source, mark = LEANED_ON[name]
    assert hashlib.sha256(inspect.getsource(source).encode()).hexdigest()[:16] == mark
