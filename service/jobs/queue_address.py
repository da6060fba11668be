"""Where the servers of the queue are, as their client is told."""

import re
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_NEXT_SERVER: Final = re.compile(r",(?=\w+://)")


def read_address(url: str) -> dict[str, Any]:
    """Return the arguments of the client of NATS for `url`, which may name several servers, separated by commas.

    Credentials apply to all servers of the cluster, also to those that the client learns of from them: it would present
    what stands in a URL to that server alone, and with its percent signs.
    """
    servers = [urlsplit(server) for server in _NEXT_SERVER.split(url)]
    address: dict[str, Any] = {
        "servers": [server._replace(netloc=server.netloc.rpartition("@")[2]).geturl() for server in servers]
    }
    for server in servers:
        if server.username is not None and server.password is not None:
            return address | {"user": unquote(server.username), "password": unquote(server.password)}
        if server.username is not None:
            return address | {"token": unquote(server.username)}
    return address
