"""GET /usage.csv: the usage of all accounts by day, for operators."""

from starlette.requests import Request
from starlette.responses import Response

from service.http.api.params import read_days
from service.metering.usage import as_csv
from service.usecases.services import Services


async def usage_by_day(request: Request) -> Response:
    """Send what each account was charged on each day, as CSV (interface 10)."""
    services: Services = request.state.services
    first, last = read_days(request.query_params, services.clock().date())
    usage = await services.usage.by_day(first, last)
    return Response(as_csv(usage), media_type="text/csv")
