"""Waiting for what must end before a cancelled task may go on."""

import asyncio
from typing import Any

from anyio import CancelScope


async def outlast(future: "asyncio.Future[Any]") -> None:
    """Wait until `future` is done, however often this task is cancelled meanwhile; raises that only then."""
    is_cancelled = False
    with CancelScope(shield=True):
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError
