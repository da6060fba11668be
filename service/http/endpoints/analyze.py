"""The pre-flight analysis."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from anyio import CancelScope, create_task_group
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.errors import Rejection
from service.http.api.inputs import ANALYSIS
from service.http.api.params import ignored_fields
from service.http.api.schemas import Analysis, json_response
from service.http.api.upload import receive_form
from service.http.promised import promised
from service.usecases.analyze_file import analyze_file
from service.usecases.services import Services

_FORM = ANALYSIS.spec()
_Result = TypeVar("_Result")


async def analyze(request: Request, caller: Caller) -> Response:
    """Report what a conversion of a GeoJSON document to Shapefile would lose (interface 4.4)."""
    services: Services = request.state.services
    with promised(request, caller) as promise:
        async with services.work_area.workspace(caller.account_id) as workspace:
            form = await receive_form(request, _FORM, workspace)
            analysis = partial(analyze_file, services, caller.account_id, form.files[0], workspace, promise)
            try:
                analyzed = await _while_connected(request, analysis)
            except Rejection as rejection:
                return json_response(Analysis(success=False, error=rejection.message))
    warnings = (*ignored_fields(request.query_params, form, _FORM.fields), *analyzed.warnings)
    return json_response(Analysis(success=True, report=analyzed.report, warnings=warnings))


async def _while_connected(request: Request, work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Do `work` for a request whose body has been read, until its client, who alone has a use for it, disconnects.

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
