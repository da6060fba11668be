"""The formats, and which of them this host offers."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.formats.offer import Availability
from service.http.api.schemas import json_response
from service.usecases.services import Services


class FormatRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One format: `name` is its value of outputFormat, null if it is only read; `reason` says what is missing."""

    name: str | None
    token: str
    title: str
    extensions: tuple[str, ...]
    input: bool
    output: bool
    multi_layer: bool
    available: bool
    reason: str | None


class FormatList(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The response of the format list."""

    formats: tuple[FormatRow, ...]


async def list_formats(request: Request, _caller: Caller) -> Response:
    """List all formats with what the service supports of each now (interface 1)."""
    services: Services = request.state.services
    return json_response(FormatList(formats=tuple(map(row_of, services.offer.formats()))))


def row_of(offered: Availability) -> FormatRow:
    """Show a format as the list has it."""
    entry = offered.format
    return FormatRow(
        name=entry.name,
        token=entry.token,
        title=entry.title,
        extensions=entry.extensions,
        input=offered.input,
        output=offered.output,
        multi_layer=entry.writing.multi_layer if entry.writing is not None else True,
        available=not offered.reason,
        reason=offered.reason or None,
    )
