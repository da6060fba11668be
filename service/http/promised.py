"""The place that a request was promised, by the server before it was parsed or else now."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

from service.accounts.keys import Caller
from service.jobs.promises import Promise
from service.usecases.services import Services

EXTENSION = "geomill.promise"
"""Where a server that has promised a place says so among the scope's extensions."""


@contextmanager
def promised(request: Request, caller: Caller) -> Iterator[Promise]:
    """Hold a place for the request until the block ends.

    Raises:
        Overloaded, TooManyRequests: there is none for this caller.
    """
    services: Services = request.state.services
    given: Promise | None = request.scope.get("extensions", {}).get(EXTENSION)
    if given is None or given.account_id != caller.account_id:
        if given is not None:
            given.release()
        given = services.promises.ask(caller.account_id)
    try:
        services.runner.refuse_if_full(caller.account_id)
        yield given
    finally:
        given.release()
