"""Receives the body of a request as a form."""

from starlette.requests import Request

from service.errors import MalformedRequest
from service.intake.form import Form, FormSpec
from service.intake.spool import receive
from service.intake.workspace import Workspace
from service.telemetry.stage import stage
from service.usecases.services import Services


async def receive_form(request: Request, form: FormSpec, workspace: Workspace) -> Form:
    """Stream the body into `workspace`; raises what `intake.spool.receive` raises."""
    services: Services = request.state.services
    with stage("receive"):
        return await receive(
            request.stream(),
            content_type=request.headers.get("content-type"),
            content_length=_content_length(request),
            form=form,
            workspace=workspace,
            limits=services.intake,
        )


def _content_length(request: Request) -> int | None:
    text = request.headers.get("content-length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise MalformedRequest("The header Content-Length is not a number.")
    return int(text)
