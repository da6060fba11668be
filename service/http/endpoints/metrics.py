"""The metrics, for Prometheus. No key needed."""

from starlette.requests import Request
from starlette.responses import Response

from service.telemetry.exposition import CONTENT_TYPE, exposition


async def metrics(_request: Request) -> Response:
    """Show the metrics of this process, or of all processes that share a metrics directory."""
    return Response(exposition(), headers={"content-type": CONTENT_TYPE})
