"""The outermost layer of every request: its id, its one line in the log, and the answer to a defect."""

import re
import secrets
import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.problems import problem_of_defect
from service.telemetry import events

_log = structlog.get_logger()
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,64}")
CLIENT_LEFT = 499
"""The status in the log of a request whose client left before it was answered; never sent."""


class RequestContext:
    """Gives each request an id (contract 1), binds it to the log, and answers what nobody expected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        await _Exchange(self._app, scope, send, request_id).run(receive)


class _Exchange:
    """One request and its answer."""

    def __init__(self, app: ASGIApp, scope: Scope, send: Send, request_id: str) -> None:
        self._app = app
        self._scope = scope
        self._send = send
        self._request_id = request_id
        self._status = 0

    async def run(self, receive: Receive) -> None:
        since = time.perf_counter()
        try:
            await self._app(self._scope, receive, self._watch)
        except ClientDisconnect:
            self._status = CLIENT_LEFT
        except Exception:  # noqa: BLE001 -- a defect of any kind is answered and recorded here
            _log.exception(events.REQUEST_FAILED)
            await self._answer_defect(receive)
        finally:
            self._record(since)

    async def _watch(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            MutableHeaders(scope=message)["X-Request-Id"] = self._request_id
        await self._send(message)

    async def _answer_defect(self, receive: Receive) -> None:
        if not self._status:
            await problem_of_defect(self._request_id)(self._scope, receive, self._watch)

    def _record(self, since: float) -> None:
        _log.info(
            events.REQUEST_FINISHED,
            method=self._scope["method"],
            route=getattr(self._scope.get("route"), "path", None),
            status=self._status,
            milliseconds=round((time.perf_counter() - since) * 1000, 1),
        )


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _WELL_FORMED.fullmatch(given) else secrets.token_hex(16)
