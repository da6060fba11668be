"""A row of the table of endpoints: its address, its inputs and all its responses.

The routes and the description of the interface are generated from the same rows.
"""

from functools import partial
from http import HTTPStatus

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from service.errors import (
    HeadersTooLarge,
    InvalidApiKey,
    InvalidIdentity,
    MalformedRequest,
    MissingApiKey,
    Overloaded,
    RequestFault,
)
from service.http.api.auth import Handler, KeyedHandler, authenticated
from service.http.api.inputs import Parameter, UploadForm
from service.http.problems import problem_of_fault

JSON = "application/json"
HEADER_FAULTS: tuple[type[RequestFault], ...] = (HeadersTooLarge, MalformedRequest)
"""The faults for which any request may be refused before it reaches its endpoint."""
_NO_QUERY = QueryParams()


class Success(msgspec.Struct, frozen=True):
    """A successful response: its meaning, body and status; `body` is None if it is not one of our JSON records."""

    meaning: str
    body: type | None = None
    status: HTTPStatus = HTTPStatus.OK
    media_type: str = JSON
    headers: tuple[str, ...] = ()


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path; `name` is unique."""

    path: str
    name: str
    summary: str
    answers: tuple[Success, ...]
    method: str = "GET"
    form: UploadForm | None = None
    parameters: tuple[Parameter, ...] = ()
    faults: tuple[type[RequestFault], ...] = ()


class _Request(Request):
    """A request without a query, as most are, needs no parser for one."""

    @property
    def query_params(self) -> QueryParams:
        return super().query_params if self.scope["query_string"] else _NO_QUERY


class _Served:
    """A handler as an ASGI application, which also responds to request faults."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI request."""
        try:
            response = await self._handler(_Request(scope, receive, send))
        except RequestFault as fault:
            response = problem_of_fault(fault, scope["state"]["request_id"])
        await response(scope, receive, send)


class Open(Endpoint, frozen=True, kw_only=True):
    """An endpoint that needs no key."""

    handler: Handler

    @property
    def all_faults(self) -> tuple[type[RequestFault], ...]:
        """All faults that the endpoint may respond with."""
        return (*self.faults, *HEADER_FAULTS)

    def route(self) -> Route:
        """Return the handler."""
        return Route(self.path, _Served(self.handler), methods=[self.method], name=self.name)


class Keyed(Endpoint, frozen=True, kw_only=True):
    """An endpoint of the interface, which requires a key (interface 5) and therefore the database."""

    handler: KeyedHandler

    @property
    def all_faults(self) -> tuple[type[RequestFault], ...]:
        """All faults that the endpoint may respond with, including those of authentication."""
        return (MissingApiKey, InvalidApiKey, InvalidIdentity, Overloaded, *self.faults, *HEADER_FAULTS)

    def route(self) -> Route:
        """Return the handler, wrapped in authentication."""
        return Route(self.path, _Served(partial(authenticated, self.handler)), methods=[self.method], name=self.name)
