"""What a row of the table of endpoints is: how it is reached, what it takes, and every answer that it gives.

The routes that serve and the description of the interface are made from the same rows.
"""

from http import HTTPStatus

import msgspec
from starlette.routing import Route

from service.errors import (
    HeadersTooLarge,
    InvalidApiKey,
    InvalidIdentity,
    MalformedRequest,
    MissingApiKey,
    Overloaded,
    RequestFault,
)
from service.http.api.auth import Handler, KeyedHandler, needs_key
from service.http.api.inputs import Parameter, UploadForm

JSON = "application/json"
OF_HEADS: tuple[type[RequestFault], ...] = (HeadersTooLarge, MalformedRequest)
"""What any request may be refused for before it is looked at."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in order: its status, what it means, and its body; `body` None is one that is no JSON of ours."""

    status: HTTPStatus = HTTPStatus.OK
    meaning: str
    body: type | None = None
    media_type: str = JSON
    headers: tuple[str, ...] = ()


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one address; `name` is unique among all."""

    method: str
    path: str
    name: str
    summary: str
    answers: tuple[Answer, ...]
    form: UploadForm | None = None
    parameters: tuple[Parameter, ...] = ()
    faults: tuple[type[RequestFault], ...] = ()


class Open(Endpoint, frozen=True, kw_only=True):
    """An endpoint that needs no key."""

    handler: Handler

    @property
    def all_faults(self) -> tuple[type[RequestFault], ...]:
        """Every fault that may be answered."""
        return (*self.faults, *OF_HEADS)

    def route(self) -> Route:
        """Return what serves it."""
        return Route(self.path, self.handler, methods=[self.method], name=self.name)


class Keyed(Endpoint, frozen=True, kw_only=True):
    """An endpoint of the interface, which needs a key (interface 5) and the database that knows it."""

    handler: KeyedHandler

    @property
    def all_faults(self) -> tuple[type[RequestFault], ...]:
        """Every fault that may be answered, those of authentication included."""
        return (MissingApiKey, InvalidApiKey, InvalidIdentity, Overloaded, *self.faults, *OF_HEADS)

    def route(self) -> Route:
        """Return what serves it, once the caller is known."""
        return Route(self.path, needs_key(self.handler), methods=[self.method], name=self.name)
