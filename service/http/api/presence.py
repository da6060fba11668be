"""Work that is of use only to the client that asked for it, and therefore ends when the client leaves."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio import CancelScope, create_task_group
from starlette.requests import ClientDisconnect, Request

_Result = TypeVar("_Result")


async def while_connected(request: Request, work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Do `work` for a request whose body has been read, until its client disconnects.

    Raises:
        ClientDisconnect: it has disconnected, or sends no more; the work was cancelled.
    """
    outcome: _Result | Exception = ClientDisconnect()
    async with create_task_group() as tasks:
        tasks.start_soon(_cancel_when_gone, request, tasks.cancel_scope)
        try:
            outcome = await work()
        except Exception as error:  # noqa: BLE001 - raised again outside the group, which would wrap it
            outcome = error
        tasks.cancel_scope.cancel()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def _cancel_when_gone(request: Request, scope: CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
