"""What clients can look up: formats, coordinate systems, plans."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.formats.offer import Availability
from service.http.api.params import read_search
from service.http.api.schemas import PlanList, json_response
from service.metering.plans import PLANS
from service.usecases.search_systems import search_systems
from service.usecases.services import Services

CURRENCY = "usd"


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


class System(msgspec.Struct, frozen=True):
    """A coordinate system, by its EPSG code."""

    epsg: int
    name: str
    area: Annotated[str, Meta(description="Where it is used, in words.")]


class SystemList(msgspec.Struct, frozen=True):
    """The response of the search for coordinate systems."""

    systems: tuple[System, ...]


async def list_systems(request: Request, _caller: Caller) -> Response:
    """List the coordinate systems that match a text (interface 4.11)."""
    services: Services = request.state.services
    text = read_search(request.query_params)
    found = await search_systems(services, text)
    return json_response(SystemList(tuple(System(*row) for row in found)))


async def list_plans(request: Request, _caller: Caller) -> Response:
    """List the plans (interface 4.5); it is free, so clients can use it to check a key."""
    services: Services = request.state.services
    ceiling = services.intake.max_file_bytes
    return json_response(PlanList(currency=CURRENCY, max_file_size_bytes=ceiling, plans=PLANS))
