"""The listening socket: a bound on open connections, and an end for clients that stop reading.

The bound is kept where connections come in, so that it holds for idle ones and for those that have sent nothing yet. A
connection too many is told so, and closed by its client. While there are too many of those nothing more is accepted:
who comes then waits in the system's queue for a moment, and is not reset.
"""

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any

BACKLOG = 2048
SILENT_READER_SECONDS = 60
"""How long a client may take nothing of an answer that is ready for it."""
TURNED_AWAY_AT_ONCE = 256
"""So many connections too many may be open, each until its client has its answer."""
RESERVED_DESCRIPTORS = 512
"""Files and sockets that the process needs beside the connections of clients."""
_AT_ONCE = 64
"""So many are accepted before others have their turn in the loop."""
_NO_DESCRIPTOR_SECONDS = 0.1

Welcome = Callable[[socket.socket, Any, bool], None]
"""Takes an accepted connection, the address of its client, and whether it is one too many."""


class Door:
    """Accepts connections, of which `most_connections` may be open at the same time."""

    def __init__(self, listening: socket.socket, most_connections: int, welcome: Welcome) -> None:
        self._listening = listening
        self._most = min(most_connections, _room_for_connections(most_connections))
        self._welcome = welcome
        self._loop = asyncio.get_running_loop()
        self._inside = self._turned_away = 0
        self._is_open = self._accepts = False

    def open(self) -> None:
        """Begin to accept."""
        self._listening.setblocking(False)
        self._is_open = True
        self._resume()

    def close(self) -> None:
        """Accept who has come already, and nobody after them; doing it twice changes nothing."""
        if self._is_open:
            self._accept(BACKLOG)
            self._pause()
            self._is_open = False
        self._listening.close()

    def note_closed(self, *, too_many: bool) -> None:
        """Count a connection as closed."""
        if too_many:
            self._turned_away -= 1
        else:
            self._inside -= 1
        self._resume()

    def _resume(self) -> None:
        if self._is_open and not self._accepts:
            self._accepts = True
            self._loop.add_reader(self._listening, self._accept)

    def _pause(self) -> None:
        if self._accepts:
            self._accepts = False
            self._loop.remove_reader(self._listening)

    def _accept(self, at_once: int = _AT_ONCE) -> None:
        for _ in range(at_once):
            too_many = self._inside >= self._most
            if too_many and self._turned_away >= TURNED_AWAY_AT_ONCE:
                self._pause()
                return
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no descriptor or memory is left: others give theirs back soon
                self._pause()
                self._loop.call_later(_NO_DESCRIPTOR_SECONDS, self._resume)
                return
            self._turned_away += too_many
            self._inside += not too_many
            client.setblocking(False)
            self._welcome(client, address, too_many)


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address.

    Raises:
        OSError: it cannot be had.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # what follows is inherited by connections
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer in two writes waits for an ACK
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_READER_SECONDS * 1000)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _room_for_connections(wanted: int) -> int:
    """Raise the limit on open files towards what is wanted, and return what it has room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, soft - RESERVED_DESCRIPTORS)
