"""One client connection between its requests: what passes the gate begins the next one, and idleness ends it.

The protocol of a connection never changes: a request to upgrade is served as HTTP/1.1. Otherwise requests could be
smuggled past a gateway inside what it takes for one request.

No task runs for a connection between requests: received bytes are processed where asyncio delivers them, and a task
lives from the end of a request's header to the end of its response. One timer of the server serves all idle
connections.
"""

import math
import socket
from collections.abc import Callable

from service.http.unserved import TOO_LATE, TOO_MANY, as_bytes
from service.jobs.promises import Promise
from service.server.channel import Channel
from service.server.exchange import Exchange
from service.server.gate import Refusal
from service.server.head import read_head, target_of
from service.server.inbox import Inbox, Refused
from service.server.site import ListenerState

LATELY_SECONDS = 2.0
"""How long after it has connected a client that is busy may need to send its first request."""


class ClientConnection(Channel):
    """A client connection; `forget` is called once it is closed.

    A client that is one too many receives a refusal.
    """

    def __init__(
        self,
        site: ListenerState,
        client: socket.socket,
        address: object,
        forget: Callable[["ClientConnection"], None],
        *,
        is_one_too_many: bool = False,
    ) -> None:
        super().__init__(site, client, address)
        self.is_one_too_many = is_one_too_many
        """Whether there were as many connections as allowed before it."""
        self._forget = forget
        self._inbox: Inbox | None = None  # made late because it costs more than a refusal
        self._refusal: Refusal | None = None
        """The gate's response to a request whose body has not arrived yet."""
        self._awaited_bytes = 0

    def start(self) -> None:
        """Process the bytes received so far, and those that follow."""
        if self.is_one_too_many:
            self.refuse(TOO_MANY)
        else:
            self._wire.start()

    def connection_lost(self) -> None:
        """Note that the connection is closed in both directions."""
        self._forget(self)
        super().connection_lost()

    @property
    def expects_request(self) -> bool:
        """Whether its client is likely to be sending a request: it has connected lately, or sent a part of one."""
        if self.due == math.inf or not self.is_open or self._is_deaf:
            return False
        return not self._is_idle() and (self._was_served or self._loop.time() - self._rests_since < LATELY_SECONDS)

    def close_if_resting(self) -> None:
        """End a connection whose client no longer waits."""
        if self.due < math.inf and not self.is_parting:
            self.close()

    def end_idleness(self) -> None:
        """End a connection that has been idle for too long, or whose client has not closed it after its last response.

        The client of an idle one may just be sending a request, because it was busy or read its last response late.
        Where that request would be its first it therefore receives the reason, and the connection is not reset.
        """
        if self.is_parting:
            self.close()
        elif self._is_idle():
            self.part()
        else:
            self.refuse(TOO_LATE)

    def make_way(self) -> None:
        """Close the connection at once, for another client; say why if a part of a request has arrived."""
        if self._refusal is not None or not (self._is_deaf or self._is_served or self._is_between_requests()):
            self._wire.write(as_bytes(TOO_MANY))
        self._wire.drop()

    def look(self, data: bytes) -> None:
        """Refuse what the gate refuses, and begin the request whose header is complete."""
        data, promise = self._pass_gate(data)
        if not data and self._is_between_requests():
            return
        if self._inbox is None:
            self._inbox = Inbox(self.site.limits.max_header_bytes)
        self._inbox += data
        try:
            request = read_head(self._inbox)
            if request is not None:
                self.begin(Exchange(self, self._inbox, request, target_of(request), promise).run())
        except Refused as refused:
            if promise is not None:
                promise.release()
            self.refuse(refused.fault)

    def _is_between_requests(self) -> bool:
        """Whether the next byte is the first of a request."""
        return not self._inbox

    def _is_idle(self) -> bool:
        """Whether a connection at rest has had a request, and the next one has not begun."""
        return self._was_served and self._refusal is None and self._is_between_requests()

    def _pass_gate(self, data: bytes) -> tuple[bytes, Promise | None]:
        """Respond to requests that the gate refuses; return the remaining bytes and the first one's promise.

        A response that keeps the connection follows the body, which is discarded as it arrives: `exchange.py` says why.
        """
        gate = self.site.gate
        while data and gate is not None and self._is_between_requests():
            if self._refusal is None:
                found = gate.look(data)
                if not isinstance(found, Refusal):
                    return data, found
                self._refusal, self._awaited_bytes = found, found.request_bytes or 0
                self.rest(resting=True)
            arrived = min(self._awaited_bytes, len(data))
            self._awaited_bytes -= arrived
            data = data[arrived:]
            if not self._awaited_bytes and not self._goes_on_after(self._refusal):
                return b"", None
        return data, None

    def _goes_on_after(self, refusal: Refusal) -> bool:
        """Send a refusal; return whether another request may follow it."""
        self._refusal = None
        self._wire.write(refusal.answer)
        self._wire.move(self.site.refused_sockets)
        self._was_served = True
        self.rest(resting=True)
        if refusal.request_bytes is None or self._writable is not None:
            self.part()
            return False
        return True
