"""The pre-flight analysis."""

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.errors import Rejection
from service.http.api.inputs import ANALYSIS
from service.http.api.params import ignored_fields
from service.http.api.presence import while_connected
from service.http.api.schemas import Analysis, json_response
from service.http.api.upload import receive_form
from service.http.promised import promised
from service.usecases.analyze_file import analyze_file
from service.usecases.services import Services

_FORM = ANALYSIS.spec()


async def analyze(request: Request, caller: Caller) -> Response:
    """Report what a conversion of a GeoJSON document to Shapefile would lose (interface 4.4)."""
    services: Services = request.state.services
    with promised(request, caller) as promise:
        async with services.work_area.workspace() as workspace:
            form = await receive_form(request, _FORM, workspace)
            analysis = partial(analyze_file, services, caller.account_id, form.files[0], workspace, promise)
            try:
                analyzed = await while_connected(request, analysis)
            except Rejection as rejection:
                return json_response(Analysis(success=False, error=rejection.message))
    warnings = (*ignored_fields(request.query_params, form, _FORM.fields), *analyzed.warnings)
    return json_response(Analysis(success=True, report=analyzed.report, warnings=warnings))
