"""The place promised to a request, either by the server before parsing or now."""

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request

from service.accounts.keys import Caller
from service.jobs.promises import Promise
from service.usecases.services import Services

EXTENSION = "geomill.promise"
"""The scope extension in which a server passes a promise."""


@contextmanager
def promised(request: Request, caller: Caller) -> Iterator[Promise]:
    """Hold a place for the request until the block ends.

    Raises:
        Overloaded, TooManyRequests: there is no place for this caller.
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
