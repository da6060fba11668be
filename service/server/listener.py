"""The listening socket: limits open connections, and ends connections of clients that stop reading.

The limit applies where connections are accepted, so it includes idle ones and those that have sent nothing yet. A
client beyond the limit takes the place of one for which the service has waited; if there is none, it receives a refusal
and closes its connection. While there are too many such connections, nothing more is accepted: new clients wait briefly
in the system's queue and are not reset.

Several processes may accept from the same socket. Connections live long, so a process that happened to accept most of
them would be busy while others are idle. A process with more connections than another therefore leaves the next one to
it for a moment, and accepts it only if no other process has.
"""

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any

from service.siblings import Siblings

BACKLOG = 2048
SILENT_READER_SECONDS = 60
"""How long a client may read nothing of a response that is ready."""
TURNED_AWAY_AT_ONCE = 256
"""How many connections beyond the limit may be open, each until its client has its refusal."""
DESCRIPTORS_EACH = 2
"""A connection has its socket, and the file that it receives or sends."""
RESERVED_DESCRIPTORS = 512
"""Files and sockets that the process needs in addition to those of client connections."""
LEAST_SHARE = 8
"""A fraction of the descriptors that are for connections even on a host that allows fewer than the process may need."""
_AT_ONCE = 16
"""How many connections are accepted, and read, in one turn of the event loop."""
_NO_DESCRIPTOR_SECONDS = 0.1
_FULL_SECONDS = 0.1
"""How long nothing is accepted while there are too many connections beyond the limit."""
_LEAVE_SECONDS = 0.002
"""How long a connection is left to a process that has fewer."""

MakeRoom = Callable[[], bool]
"""Closes some connections by the next turn of the event loop, if any can be closed; returns whether it has."""
Welcome = Callable[[socket.socket, Any, bool], None]
"""Receives an accepted connection, its client's address, and whether it exceeds the limit."""


class Door:
    """Accepts connections; at most `most_connections` may be open at the same time.

    `siblings` are the processes that accept from the same socket.
    """

    def __init__(
        self, listening: socket.socket, most_connections: int, welcome: Welcome, make_room: MakeRoom, siblings: Siblings
    ) -> None:
        self._listening = listening
        self._most = min(most_connections, room_for_connections(most_connections))
        self._welcome = welcome
        self._make_room = make_room
        self._siblings = siblings
        self._loop = asyncio.get_running_loop()
        self._inside = self._turned_away = 0
        self._is_open = self._accepts = False

    def open(self) -> None:
        """Start accepting connections."""
        self._listening.setblocking(False)
        self._is_open = True
        self._note_count()
        self._resume()

    def close(self) -> None:
        """Accept the connections already waiting, then stop; stopping twice has no effect."""
        if self._is_open:
            self._is_open = False
            self._accept(BACKLOG)
            self._pause()
            self._note_count()
        self._listening.close()

    def note_closed(self, *, too_many: bool) -> None:
        """Count a connection as closed."""
        if too_many:
            self._turned_away -= 1
        else:
            self._inside -= 1
            self._note_count()
        self._resume()

    def _note_count(self) -> None:
        self._siblings.note_connections(self._inside, is_open=self._is_open)

    def _resume(self) -> None:
        if self._is_open and not self._accepts:
            self._accepts = True
            self._loop.add_reader(self._listening, self._accept_share)

    def _pause(self) -> None:
        if self._accepts:
            self._accepts = False
            self._loop.remove_reader(self._listening)

    def _pause_for(self, seconds: float) -> None:
        self._pause()
        self._loop.call_later(seconds, self._resume)

    def _accept_share(self) -> None:
        """Accept waiting connections while no other process has fewer."""
        for _ in range(_AT_ONCE):
            if self._siblings.should_take_next(self._inside):
                self._pause()
                self._loop.call_later(_LEAVE_SECONDS, self._accept_what_is_left)
                return
            if not self._accept(1):
                return

    def _accept_what_is_left(self) -> None:
        """Accept a connection that no other process has taken, and continue."""
        if self._is_open and not self._accepts:
            self._resume()
            self._accept(1)

    def _accept(self, at_once: int) -> bool:
        """Accept up to `at_once` connections; return whether there were as many."""
        for _ in range(at_once):
            too_many = self._inside >= self._most
            if too_many and self._is_open and self._make_room():
                return False
            if too_many and self._turned_away >= TURNED_AWAY_AT_ONCE:
                self._pause_for(_FULL_SECONDS)
                return False
            try:
                client, address = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return False
            except OSError:  # no descriptor or memory is left; other connections will release theirs soon
                self._pause_for(_NO_DESCRIPTOR_SECONDS)
                return False
            self._turned_away += too_many
            self._inside += not too_many
            self._note_count()
            client.setblocking(False)
            self._welcome(client, address, too_many)
        return True


def listen(host: str, port: int) -> socket.socket:
    """Listen on an address.

    Raises:
        OSError: the address is not available.
    """
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # connections inherit these options
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else a second write waits for an ACK
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENT_READER_SECONDS * 1000)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def descriptors_for(connections: int) -> int:
    """Return how many files a process must be able to open that serves so many connections at the same time."""
    return connections * DESCRIPTORS_EACH + RESERVED_DESCRIPTORS


def room_for_connections(wanted: int) -> int:
    """Raise the limit on open files as far as possible, and return the number of connections that it allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = descriptors_for(wanted)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(soft // LEAST_SHARE, (soft - RESERVED_DESCRIPTORS) // DESCRIPTORS_EACH)
