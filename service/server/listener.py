"""The listening socket: a bound on open connections, and an end for clients that stop reading.

The bound is kept where connections come in, so that it holds for idle ones and for those that have sent nothing yet. A
connection too many is told so, read for a moment so that its client sees the answer, and closed.
"""

import asyncio
import resource
import socket
from contextlib import suppress
from typing import Any

from service.http.unserved import TOO_MANY, as_bytes

BACKLOG = 2048
SILENT_READER_SECONDS = 60
"""How long a client may take nothing of an answer that is ready for it."""
PARTING_SECONDS = 2.0
PARTING_AT_ONCE = 256
_AT_ONCE_BYTES = 64 * 1024
RESERVED_DESCRIPTORS = 512
"""Files and sockets that the process needs beside the connections of clients."""


class Listener(socket.socket):
    """A listening socket that accepts at most `most_connections` at the same time."""

    def __init__(self, family: int, most_connections: int) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self._most = most_connections
        self._open = 0
        self._parting = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection that there is room for.

        Raises:
            BlockingIOError: there is none.
        """
        while True:
            accepted, address = super().accept()
            if self._open < self._most:
                self._open += 1
                return _Connection(self, accepted), address
            self._refuse(accepted)

    def forget(self) -> None:
        """Count a connection as closed."""
        self._open -= 1

    def _refuse(self, client: socket.socket) -> None:
        client.setblocking(False)
        with suppress(OSError):
            client.send(as_bytes(TOO_MANY))
            client.shutdown(socket.SHUT_WR)
        if self._parting >= PARTING_AT_ONCE:
            with suppress(OSError):
                client.recv(_AT_ONCE_BYTES)  # what is unread would reset the connection, and destroy the answer
            client.close()
            return
        self._parting += 1
        loop = asyncio.get_running_loop()
        loop.add_reader(client, self._eat, client)
        loop.call_later(PARTING_SECONDS, self._part, client)

    def _eat(self, client: socket.socket) -> None:
        try:
            if client.recv(_AT_ONCE_BYTES):
                return
        except OSError:
            pass
        self._part(client)

    def _part(self, client: socket.socket) -> None:
        if client.fileno() >= 0:
            self._parting -= 1
            asyncio.get_running_loop().remove_reader(client)
            client.close()


class _Connection(socket.socket):
    """An accepted connection, which its listener counts until it is closed."""

    def __init__(self, listener: Listener, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._listener: Listener | None = listener

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.forget()
        super().close()


def listen(host: str, port: int, most_connections: int) -> Listener:
    """Listen on an address for at most so many connections, or for as many as the limit on open files has room for.

    Raises:
        OSError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = Listener(family, min(most_connections, _room_for_connections(most_connections)))
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # what follows is inherited by connections
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer in two writes waits for an ACK
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_READER_SECONDS * 1000)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _room_for_connections(wanted: int) -> int:
    """Raise the limit on open files towards what is wanted, and return what it has room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, soft - RESERVED_DESCRIPTORS)
