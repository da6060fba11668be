"""The place promised to a request, either by the server before parsing or now."""

from starlette.requests import Request

from service.accounts.keys import Caller
from service.jobs.promises import Promise
from service.usecases.services import Services

EXTENSION = "geomill.promise"
"""The scope extension in which a server passes a promise."""


def promised(request: Request, caller: Caller) -> Promise:
    """Return a place for the request, to be released.

    Raises:
        Overloaded, TooManyRequests: there is no place for this caller.
    """
    services: Services = request.state.services
    services.runner.refuse_if_full(caller.account_id)
    given: Promise | None = request.scope.get("extensions", {}).get(EXTENSION)
    if given is None:
        return services.promises.ask(caller.account_id)
    if given.account_id == caller.account_id:
        return given
    given.release()
    return services.promises.ask(caller.account_id)
