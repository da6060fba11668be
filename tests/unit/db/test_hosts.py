"""The hosts of a database are tried one after another, each with its share of the time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from service.db.faults import REFUSED
from service.db.hosts import Hosts


@asynccontextmanager
async def listener(tried: list[str], name: str, *, hangs_up: bool) -> AsyncIterator[int]:
    """A host that is not a database: it records each connection, and closes it or stays silent."""

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tried.append(name)
        if not hangs_up:
            while await reader.read(1024):
                pass
        writer.close()

    async with await asyncio.start_server(meet, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize("hangs_up", [True, False], ids=["hangs up", "is silent"])
async def test_a_host_that_does_not_serve_keeps_nobody_from_the_next(hangs_up: bool) -> None:
    """Whether it refuses or stays silent; the error is the last host's."""
    tried: list[str] = []
    async with (
        listener(tried, "first", hangs_up=hangs_up) as first,
        listener(tried, "second", hangs_up=True) as second,
    ):
        url = f"postgresql://user:a%2Cb@127.0.0.1:{first},127.0.0.1:{second}/geomill?sslmode=disable"
        with pytest.raises(REFUSED):
            await Hosts(url, 1.0).connect()
    assert tried == ["first", "second"]


async def test_a_url_of_one_host_is_tried_once() -> None:
    """Without a share."""
    tried: list[str] = []
    async with listener(tried, "only", hangs_up=True) as port:
        with pytest.raises(REFUSED):
            await Hosts(f"postgresql://user@127.0.0.1:{port}/geomill?sslmode=disable", 1.0).connect()
    assert tried == ["only"]
