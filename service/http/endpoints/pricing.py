"""The plans."""

from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.http.api.schemas import PlanList, json_response
from service.metering.plans import PLANS
from service.usecases.services import Services

CURRENCY = "usd"


async def list_plans(request: Request, _caller: Caller) -> Response:
    """List the plans (interface 4.5); it is free, so clients can use it to check a key."""
    services: Services = request.state.services
    ceiling = services.intake.max_file_bytes
    return json_response(PlanList(currency=CURRENCY, max_file_size_bytes=ceiling, plans=PLANS))
