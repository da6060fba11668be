"""Handles responses that are ready before the request body has been read, if the server does not.

Our server does this itself and announces it in the scope's extensions. This middleware is for the servers of
applications that mount this one, such as Hypercorn.

Theory of operation. A refusal (401, 413, 503…) or a defect can occur while the client is still sending, which causes
two problems. Hypercorn passes the body to the application through a queue of a few chunks and puts its last message,
the disconnect, into the same queue from inside the application's own `send`: if the queue is full, both wait forever,
and the connection, its tasks and its memory leak. And a server that closes a connection with unread bytes resets it,
which can destroy the response before the client has read it.

So if the application responds early, this middleware drains the rest of the request body. While messages are sent, a
task empties the queue. After the complete response the body is drained for a while longer, so that the client sees the
response and stops sending; only then is the final message sent. A body with a small declared length is drained first,
which keeps the connection open, unless the client waits for 100 Continue. Requests without a body pass unchanged. An
application that starts its response gives up the rest of the body: it must read first.

It must be the outermost middleware: responses sent from outside it are not protected.
"""

import math

from anyio import Lock, create_task_group, move_on_after
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ENDS_BODIES = "geomill.ends_bodies"
"""The scope extension with which a server announces that it drains unread bodies itself."""
SMALL_BODY_BYTES = 64 * 1024
LINGER_BYTES = 128 * 1024 * 1024  # the largest upload, so that clients that send first and read later see the response
LINGER_SECONDS = 2.0

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_END: Message = {"type": "http.response.body", "body": b"", "more_body": False}
_DEFECT: Message = {"type": "http.response.start", "status": 500, "headers": [(b"content-length", b"0")]}


class DrainingMiddleware:
    """ASGI middleware that drains the body if the application responds without reading it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (the ASGI interface)."""
        leaves_it = scope["type"] != "http" or ENDS_BODIES in scope.get("extensions", {})
        length = 0 if leaves_it else _body_length(scope)
        if length == 0:
            await self._app(scope, receive, send)
        else:
            await _DrainedExchange(scope, receive, send, length).run(self._app)


class _DrainedExchange:
    """One request with a body, and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, length: float) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._length = length
        self._turn = Lock(fast_acquire=True)
        self._body_ended = False
        self._disconnected = False
        self._started = False
        self._answered = False

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            await self._conclude()
            raise
        await self._conclude()

    async def receive(self) -> Message:
        """Receive a message, for the application or for draining; one at a time, so that both see a disconnect."""
        async with self._turn:
            if self._disconnected:
                return {"type": "http.disconnect"}
            message = await self._receive()
            self._disconnected = message["type"] == "http.disconnect"
            self._body_ended = self._disconnected or not message.get("more_body", False)
            return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            message = await self._start(message)
        ends = message["type"] == "http.response.body" and not message.get("more_body", False)
        if self._body_ended:
            await self._send(message)
        elif ends:
            await self._finish(message)
        else:
            await self._send_while_draining(message)
        self._answered = self._answered or ends

    async def _start(self, message: Message) -> Message:
        self._started = True
        if self._length <= SMALL_BODY_BYTES and not _waits_to_be_asked(self._scope):
            await self._drain()
        if self._body_ended or self._scope["http_version"] >= "2":
            return message
        headers = [header for header in message.get("headers", ()) if header[0].lower() != b"connection"]
        return {**message, "headers": [*headers, (b"connection", b"close")]}

    async def _finish(self, message: Message) -> None:
        await self._send_while_draining({**message, "more_body": True})
        await self._drain(LINGER_BYTES)
        await self._send_while_draining(_END)
        await self._drain()

    async def _conclude(self) -> None:
        """Make sure that the server can end the request, whatever state the application left it in."""
        if self._answered or self._body_ended:
            return
        if not self._started:
            await self.send(_DEFECT)
            await self.send(_END)
        else:
            await self._drain()

    async def _send_while_draining(self, message: Message) -> None:
        failure: Exception | None = None
        async with create_task_group() as tasks:
            tasks.start_soon(self._read_body, math.inf)
            try:
                await self._send(message)
            except Exception as error:  # noqa: BLE001  (raised again outside the group, which would wrap it)
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _drain(self, most_bytes: float = math.inf) -> None:
        with move_on_after(LINGER_SECONDS):
            await self._read_body(most_bytes)

    async def _read_body(self, most_bytes: float) -> None:
        drained = 0
        while not self._body_ended and drained < most_bytes:
            drained += len((await self.receive()).get("body", b""))


def _body_length(scope: Scope) -> float:
    """Return the declared length of the body in bytes: 0 without a body, infinite if it is not declared."""
    headers = dict(scope["headers"])
    declared = headers.get(b"content-length", b"")
    if declared.isdigit():
        return int(declared)
    undeclared = b"transfer-encoding" in headers or (scope["http_version"] >= "2" and scope["method"] in _BODY_METHODS)
    return math.inf if undeclared else 0


def _waits_to_be_asked(scope: Scope) -> bool:
    """Whether the client sends its body only after 100 Continue, which reading would trigger."""
    return any(name == b"expect" for name, _ in scope["headers"])
