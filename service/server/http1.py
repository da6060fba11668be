"""HTTP/1.1 on a connection: parses requests, one after another, and serializes their responses.

Bytes that cannot be parsed are refused (see `inbox.py`), and so is a target that contradicts the header Host. The
protocol of a connection never changes: a request to upgrade is served as HTTP/1.1. Otherwise requests could be smuggled
past a gateway inside what it takes for one request.
"""

import re

from service.errors import MalformedRequest
from service.http.unserved import UNREADABLE, WEBSOCKET
from service.jobs.promises import Promise
from service.server.channel import Channel
from service.server.exchange import Exchange
from service.server.head import HOST, RequestHead, read_head
from service.server.inbox import Inbox, Refused

_VERSIONS = frozenset({b"1.0", b"1.1"})
_ABSOLUTE = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE)


class Http1:
    """The requests of one connection."""

    def __init__(self, connection: Channel) -> None:
        self._connection = connection
        self._inbox = Inbox(connection.site.limits.max_header_bytes)

    @property
    def is_blank(self) -> bool:
        """Whether the next byte is the first of a request."""
        return not self._inbox

    def look(self, data: bytes, promise: Promise | None) -> None:
        """Accept bytes, if any, while no request is in progress, and start the request whose header is complete.

        `promise` is the promise to that request.

        Raises:
            Refused: the bytes are not a request, or an ambiguous one.
        """
        self._inbox += data
        request = read_head(self._inbox)
        if request is None:
            return
        exchange = Exchange(self._connection, self._inbox, request, _target(request), promise)
        self._connection.begin(exchange.run())


def _target(request: RequestHead) -> bytes:
    """Return the path and query of an unambiguous request.

    Raises:
        Refused: the request names two hosts, or its target is not a path.
    """
    if request.version not in _VERSIONS:
        raise Refused(UNREADABLE)
    if request.fields.get(b"upgrade", b"").lower() == b"websocket":
        raise Refused(WEBSOCKET)
    target = request.target
    if absolute := _ABSOLUTE.fullmatch(target):
        if absolute[1].lower() != request.fields.get(HOST, absolute[1]).lower():
            raise Refused(MalformedRequest("The target and the header Host name different hosts. Send the same."))
        target = absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
    if b"#" in target or not (target.startswith(b"/") or (target == b"*" and request.method == b"OPTIONS")):
        raise Refused(MalformedRequest("The target of the request is not a path. Send a path that begins with /."))
    return target
