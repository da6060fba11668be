"""Searches the coordinate systems of PROJ; a gateway, which has no PROJ, has any worker do it (interface 4.11)."""

from functools import partial
from typing import Final

import anyio.to_thread
import msgspec

from service.usecases.services import Services

TOPIC: Final = "systems"
_SECONDS: Final = 10.0

System = tuple[int, str, str]
"""The code, name and area of a coordinate system."""


async def search_systems(services: Services, text: str) -> list[System]:
    """Return the systems that match a text, the most likely first.

    Raises:
        Overloaded: no worker answers.
    """
    if services.asked is not None:
        return msgspec.msgpack.decode(await services.asked.ask(TOPIC, text.encode(), _SECONDS), type=list[System])
    return await anyio.to_thread.run_sync(partial(services.engine.catalogue.search, text))


async def answer_search(services: Services, question: bytes) -> bytes:
    """Answer the question of a gateway."""
    return msgspec.msgpack.encode(await search_systems(services, question.decode()))
