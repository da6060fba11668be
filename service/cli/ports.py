"""The listening sockets of the service: the main port, and the private one if there is one."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from service.cli.command import CommandError
from service.server.listener import listen
from service.settings import Settings

HOST_ALONE = "GEOMILL_PRIVATE_HOST has no effect without a port. Set GEOMILL_PRIVATE_PORT, too."


class Ports(NamedTuple):
    """The sockets that the service listens on."""

    main: socket.socket
    private: socket.socket | None


@contextmanager
def open_ports(settings: Settings) -> Iterator[Ports]:
    """Listen on the ports of the settings, until the end of the block.

    Raises:
        CommandError: a port is not available.
    """
    with ExitStack() as stack:
        main = stack.enter_context(_listen(settings.host, settings.port, "GEOMILL_HOST", "GEOMILL_PORT"))
        yield Ports(main, stack.enter_context(open_private_port(settings)))


@contextmanager
def open_private_port(settings: Settings) -> Iterator[socket.socket | None]:
    """Listen on the private port of the settings, if they name one, until the end of the block.

    Raises:
        CommandError: the port is not available, or not named although its address is.
    """
    if settings.private_port is None:
        if settings.private_host:
            raise CommandError(HOST_ALONE)
        yield None
        return
    host = settings.private_host or settings.host
    named_by = "GEOMILL_PRIVATE_HOST" if settings.private_host else "GEOMILL_HOST"
    with _listen(host, settings.private_port, named_by, "GEOMILL_PRIVATE_PORT") as private:
        yield private


@contextmanager
def inherited_ports(main: int, private: int | None) -> Iterator[Ports]:
    """Use the sockets with these descriptors, which another process listens on as well, until the end of the block."""
    with ExitStack() as stack:
        ports = Ports(
            main=stack.enter_context(_inherited(main)),
            private=stack.enter_context(_inherited(private)) if private is not None else None,
        )
        yield ports


def url_of(listening: socket.socket) -> str:
    """Return the URL of a socket's address."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def _inherited(descriptor: int) -> socket.socket:
    inherited = socket.socket(fileno=descriptor)
    inherited.set_inheritable(False)
    return inherited


def _listen(host: str, port: int, host_variable: str, port_variable: str) -> socket.socket:
    try:
        return listen(host, port)
    except (OSError, UnicodeError) as error:
        is_host = (
            not isinstance(error, OSError) or isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        )
        kind = "of 1024 or more" if isinstance(error, PermissionError) else "that is free"
        what = f"{host_variable} to an address of this host" if is_host else f"{port_variable} to a port {kind}"
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise CommandError(f"The service cannot listen on {host}:{port} ({reason}). Set {what}.") from None
