"""Receives the body of a request as a form."""

from starlette.requests import Request

from service.errors import MalformedRequest, UnsupportedEncoding
from service.intake.form import Form, FormSpec
from service.intake.spool import receive
from service.intake.workspace import Workspace
from service.telemetry.stage import stage
from service.usecases.services import Services


async def receive_form(request: Request, form: FormSpec, workspace: Workspace) -> Form:
    """Stream the body into `workspace`.

    Raises:
        UnsupportedEncoding: the body is compressed (interface 7.1); nothing of it is read.
        RequestFault: as `intake.spool.receive`.
    """
    services: Services = request.state.services
    _refuse_encodings(request)
    with stage("receive"):
        return await receive(
            request.stream(),
            content_type=request.headers.get("content-type"),
            content_length=_content_length(request),
            form=form,
            workspace=workspace,
            limits=services.intake,
        )


def _refuse_encodings(request: Request) -> None:
    given = ",".join(request.headers.getlist("content-encoding"))
    if {name.strip().lower() for name in given.split(",")} - {"", "identity"}:
        raise UnsupportedEncoding(
            "The body is compressed (Content-Encoding). Send it as it is; the file itself may be a .gz or .zip."
        )


def _content_length(request: Request) -> int | None:
    text = request.headers.get("content-length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise MalformedRequest("The header Content-Length is not a number.")
    return int(text)
