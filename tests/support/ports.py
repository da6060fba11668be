"""Ports for servers that are told one: chosen now, used later, and by a server that starts again."""

import secrets
import socket
from contextlib import suppress
from pathlib import Path

_FIRST, _LAST = 10_000, 20_000
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that nobody listens on, below those that the kernel hands out, which another test could get meanwhile."""
    handed_out = int(_RANGE.read_text(encoding="ascii").split()[0])
    end = handed_out if handed_out > _LAST else 65_536
    while True:
        port = _FIRST + secrets.randbelow(end - _FIRST)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
