"""Ports for servers that are told one: chosen now, used later, and by a server that starts again."""

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path

_FIRST, _LAST = 10_000, 20_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_WORKERS = 16
"""Of xdist, so many at most choose among ports of their own: another one would see a port as free until it is used."""
_chosen: set[int] = set()


def free_port() -> int:
    """A port that nobody listens on, below those that the kernel hands out, which another test could get meanwhile."""
    handed_out = int(_RANGE.read_text(encoding="ascii").split()[0])
    end = handed_out if handed_out > _LAST else 65_536
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    while True:
        port = secrets.choice(range(_FIRST + worker, end, _WORKERS))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            if port not in _chosen:
                _chosen.add(port)
                return port
