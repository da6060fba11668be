"""The metrics, for Prometheus. No key needed."""

from starlette.requests import Request
from starlette.responses import Response

from service.telemetry.exposition import CONTENT_TYPE, Exposition

_EXPOSITION = Exposition()


async def metrics(request: Request) -> Response:
    """Show the metrics of this process, or of all processes that share a metrics directory."""
    text = await _EXPOSITION.text(may_be_old=request.state.services.promises.is_refusing)
    return Response(text, headers={"content-type": CONTENT_TYPE})
