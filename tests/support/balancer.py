"""A load balancer for several servers: it probes their readiness and forwards connections to ready ones."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import anyio
import anyio.abc
import httpx
from anyio.from_thread import start_blocking_portal

from tests.support.patience import PATIENCE_SECONDS

PROBE_SECONDS = 0.3


class Balancer:
    """Forwards each connection to a ready server, in turn, and copies bytes both ways until one side ends."""

    def __init__(self) -> None:
        self.url = ""
        self._ready: dict[str, bool] = {}
        self._turn = 0

    def add(self, server_url: str) -> None:
        """Forward connections to this server too, once it is ready."""
        self._ready[server_url] = False

    def remove(self, server_url: str) -> None:
        """Remove a server that has ended."""
        del self._ready[server_url]

    def is_ready(self, server_url: str) -> bool:
        """The result of the server's last probe."""
        return self._ready[server_url]

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Serve until cancelled."""
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610 -- not Django's
            self.url = f"http://127.0.0.1:{port}"
            tasks.start_soon(self._probe)
            tasks.start_soon(listener.serve, self._lead)
            task_status.started()

    async def _probe(self) -> None:
        """Ask all servers at the same time: a slow one holds up none of the others."""
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as client:
            while True:
                async with anyio.create_task_group() as tasks:
                    for url in list(self._ready):
                        tasks.start_soon(self._note, client, url)
                await anyio.sleep(PROBE_SECONDS)

    async def _note(self, client: httpx.AsyncClient, url: str) -> None:
        ready = await self._ask(client, url)
        if url in self._ready:
            self._ready[url] = ready

    @staticmethod
    async def _ask(client: httpx.AsyncClient, url: str) -> bool:
        try:
            return (await client.get(f"{url}/readyz")).is_success
        except httpx.HTTPError:
            return False

    async def _lead(self, client: anyio.abc.SocketStream) -> None:
        ready = [url for url, is_ready in self._ready.items() if is_ready]
        if not ready:
            await client.aclose()
            return
        self._turn += 1
        address = urlsplit(ready[self._turn % len(ready)])
        server = await anyio.connect_tcp(str(address.hostname), address.port or 80)
        async with client, server, anyio.create_task_group() as tasks:
            tasks.start_soon(self._copy, client, server)
            tasks.start_soon(self._copy, server, client)

    @staticmethod
    async def _copy(source: anyio.abc.SocketStream, target: anyio.abc.SocketStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in source:
                await target.send(chunk)
            await target.send_eof()


@contextmanager
def running_balancer() -> Iterator[Balancer]:
    """A load balancer in its own thread."""
    balancer = Balancer()
    with start_blocking_portal() as portal:
        running, _ = portal.start_task(balancer.run)
        yield balancer
        portal.call(asyncio.sleep, 0)
        running.cancel()
