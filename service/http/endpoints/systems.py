"""The coordinate systems that a conversion can name."""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from service.accounts.keys import Caller
from service.http.api.params import read_search
from service.http.api.schemas import json_response
from service.usecases.search_systems import search_systems
from service.usecases.services import Services


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
