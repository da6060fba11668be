"""What the server replaces of Hypercorn and h11 is as it was when the replacements were written.

A row that fails says what has changed upstream: read that, bring the replacement in line, and put the new mark here.
"""

import hashlib
import inspect
from collections.abc import Callable

import h11._connection
import h11._receivebuffer
import hypercorn.asyncio.run
import hypercorn.protocol
import pytest
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.protocol.h11 import H11Protocol

REPLACED: dict[str, tuple[Callable[..., object], str]] = {
    "h11._connection.Connection.__init__": (h11._connection.Connection.__init__, "d7d7aae703ba016a"),
    "h11._receivebuffer.ReceiveBuffer": (h11._receivebuffer.ReceiveBuffer, "108c4355eb3b1717"),
    "hypercorn.asyncio.run.worker_serve": (hypercorn.asyncio.run.worker_serve, "ae30269c42b95442"),
    "hypercorn.asyncio.tcp_server.TCPServer": (TCPServer, "3bfa72b319509f2b"),
    "hypercorn.protocol.ProtocolWrapper": (hypercorn.protocol.ProtocolWrapper, "caf949187e9b4a81"),
    "hypercorn.protocol.h11.H11Protocol": (H11Protocol, "b32a61e0a8ca2127"),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_is_replaced_is_as_it_was(name: str) -> None:
    """Its source has the mark that it had."""
    replaced, mark = REPLACED[name]
    assert hashlib.sha256(inspect.getsource(replaced).encode()).hexdigest()[:16] == mark
