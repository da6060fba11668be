"""Gateways and workers as processes, with NATS, PostgreSQL and an S3 server."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import nats
from anyio.from_thread import BlockingPortal

from bench.fleet.hosts import LOOPBACK, Host
from service.accounts.administration import Terms
from service.app.storage import open_storage
from service.db.pool import Database, open_pool
from service.errors import QueueUnavailable
from service.jobs.queue_contents import open_contents
from service.jobs.queue_state import look_at_queue
from service.jobs.register import JobRegister
from service.jobs.stream import STREAM
from service.settings import Settings
from service.storage.port import ObjectKey, Storage
from service.usecases.audit import audit
from tests.fleet.nats import NatsServer
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server
from tests.support.data import lakes
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Client, Server, create_account, running_server

LEASE_SECONDS = 3
"""How long anything may take on a host that has much else to do; nothing is judged by it but that it ends at all."""
GATEWAY = ("serve", "--role", "gateway")
WORKER = ("worker",)


class Site:
    """The whole fleet, with direct access to the database and the store for tests."""

    def __init__(
        self,
        portal: BlockingPortal,
        directory: Path,
        dsn: str,
        s3: S3Server,
        nats: NatsServer,
        *,
        gateways: Sequence[Host] = (LOOPBACK,),
        workers: Sequence[Host] = (LOOPBACK, LOOPBACK),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.nats = nats
        self.s3 = s3
        self.dsn = dsn
        self.settings = {
            "GEOMILL_NATS_URL": nats.url,
            "GEOMILL_S3_ENDPOINT": s3.url,
            "GEOMILL_S3_BUCKET": BUCKET,
            "GEOMILL_S3_ACCESS_KEY": ACCESS_KEY,
            "GEOMILL_S3_SECRET_KEY": SECRET_KEY,
            "GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS),
            "GEOMILL_CONVERTERS": "1",
            **(settings or {}),
        }
        self._portal = portal
        self.directory = directory
        self._stack = ExitStack()
        self._database: Database = self._enter(open_pool(dsn))
        own = Settings(
            s3_bucket=BUCKET, s3_access_key=ACCESS_KEY, s3_secret_key=SECRET_KEY, s3_endpoint=s3.url, data_dir="unused"
        )
        self._storage: Storage = self._enter(open_storage(own))
        self.gateways = [self.start(f"gateway-{number}", GATEWAY, host) for number, host in enumerate(gateways, 1)]
        self.before_workers = self.ask_without_workers()
        self.workers = [self.start(f"worker-{number}", WORKER, host) for number, host in enumerate(workers, 1)]

    @property
    def gateway(self) -> Server:
        """The first gateway."""
        return self.gateways[0]

    def start(
        self,
        name: str,
        command: tuple[str, ...],
        host: Host = LOOPBACK,
        program: tuple[str, ...] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Server:
        """Start a process that is stopped at the end. A gateway gets no GDAL."""
        own = settings or {}
        settings = {**self.settings, "GEOMILL_PRIVATE_PORT": "0", "GEOMILL_HOST": host.address, **own}
        if command == GATEWAY:
            settings |= {"PATH": str(self.directory), "GEOMILL_OGR2OGR": ""}
        return self._stack.enter_context(
            running_server(
                self.directory / name, self.dsn, settings, program=program, command=command, prefix=host.prefix
            )
        )

    def client(self, plan: str = "free") -> Client:
        """Return a client of the gateway with a fresh account."""
        return create_account(self.gateway, Terms(plan=plan))

    def ask_without_workers(self) -> dict[str, httpx.Response]:
        """What the gateway answers before the first worker has started."""
        with self.client() as client:
            return {
                "formats": client.get("/api/geo/formats"),
                "systems": client.get("/api/geo/systems", params={"search": "utm"}),
                "conversion": client.post("/api/geo/convert/file", files={"file": ("a.geojson", lakes())}),
                "readiness": httpx.get(f"{self.gateway.private_url}/readyz", timeout=PATIENCE_SECONDS),
            }

    def await_workers(self) -> None:
        """Wait until each gateway knows a worker."""
        wait_until(lambda: all(self.readiness(gateway)["checks"]["workers"] == "ok" for gateway in self.gateways))

    @contextmanager
    def frozen(self, *servers: Server) -> Iterator[None]:
        """Suspend processes, wherever they are in their work, inside the block."""
        for server in servers:
            server.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for server in servers:
                with suppress(ProcessLookupError):
                    server.process.send_signal(signal.SIGCONT)

    def frozen_workers(self) -> AbstractContextManager[None]:
        """Suspend all workers inside the block."""
        return self.frozen(*self.workers)

    def readiness(self, gateway: Server | None = None) -> dict[str, Any]:
        """The response of the readiness probe of the first gateway, or of another one."""
        url = (gateway or self.gateway).private_url
        answer: dict[str, Any] = httpx.get(f"{url}/readyz", timeout=PATIENCE_SECONDS).json()
        return answer

    def revive(self) -> None:
        """Replace killed processes, resume suspended ones, and let them end what they have."""
        for servers, command in ((self.workers, WORKER), (self.gateways, GATEWAY)):
            for number, server in enumerate(servers):
                with suppress(ProcessLookupError):
                    server.process.send_signal(signal.SIGCONT)
                if server.process.poll() is not None:
                    servers[number] = self.start(server.data_dir.name, command)
        self.await_workers()
        wait_until(lambda: not self.messages())  # whoever waits for an answer has it before the message is removed

    def rows(self, query: str, *arguments: object) -> list[dict[str, Any]]:
        """The rows that a statement returns."""
        return self._portal.call(self._rows, query, arguments)

    def audit(self) -> list[str]:
        """The differences between ledger, jobs, store and queue."""
        return self._portal.call(self._audit)

    def stored(self) -> set[str]:
        """The keys of all objects in the store."""
        return self._portal.call(self._stored)

    def replace(self, key: str, content: bytes) -> None:
        """Store this in the place of an object."""
        (path := self.directory / "replacement").write_bytes(content)
        self._portal.call(partial(self._storage.put, ObjectKey(key), path, media_type="", download_name="a"))

    def messages(self) -> int:
        """How many jobs are in the queue, including those that workers have, once it answers."""
        return self._portal.call(self._messages)

    @contextmanager
    def full_queue(self) -> Iterator[None]:
        """Let the queue accept no job inside the block, as if its disk were full."""
        former = self._portal.call(self._limit_bytes, 1)
        try:
            yield
        finally:
            self._portal.call(self._limit_bytes, former)

    @contextmanager
    def held_settlements(self) -> Iterator[None]:
        """Let no job be settled inside the block: none completes, however late anybody looks."""
        with self._portal.wrap_async_context_manager(self._database.transaction()) as connection:
            self._portal.call(connection.execute, "LOCK TABLE ledger IN SHARE MODE")
            yield

    def sweep(self) -> None:
        """Remove inputs of ended jobs and late objects, as the service does every minute."""
        self._portal.call(self._sweep)

    def is_clean(self) -> bool:
        """Whether the audit is clean once late objects are removed: a process that resumes may store one more."""
        self.sweep()
        return self.audit() == []

    def end(self) -> None:
        """Stop everything."""
        with suppress(ProcessLookupError):
            for server in (*self.workers, *self.gateways):
                server.process.send_signal(signal.SIGCONT)
        self._stack.close()

    def _enter(self, context: Any) -> Any:
        return self._stack.enter_context(self._portal.wrap_async_context_manager(context))

    async def _rows(self, query: str, arguments: tuple[object, ...]) -> list[dict[str, Any]]:
        async with self._database.connection() as connection:
            return [dict(row) for row in await connection.fetch(query, *arguments)]

    async def _audit(self) -> list[str]:
        return await audit(self._database, self._storage, partial(open_contents, self.nats.url, LEASE_SECONDS))

    async def _messages(self) -> int:
        while True:
            with suppress(QueueUnavailable):
                return (await look_at_queue(self.nats.url)).messages
            await anyio.sleep(0.05)

    async def _limit_bytes(self, most_bytes: int | None) -> int | None:
        operator = await nats.connect(self.nats.url)
        try:
            config = (await operator.jetstream().stream_info(STREAM)).config
            await operator.jetstream().update_stream(config.evolve(max_bytes=most_bytes))
            return config.max_bytes
        finally:
            await operator.close()

    async def _stored(self) -> set[str]:
        return {entry.key async for entry in self._storage.objects()}

    async def _sweep(self) -> None:
        register = JobRegister(self._database)

        async def remove(keys: list[str]) -> None:
            await self._storage.delete([ObjectKey(key) for key in keys])

        await register.remove_inputs(remove, 500)
        async with self._database.connection() as connection:
            await connection.execute("UPDATE late_object SET next_at = now()")
        await register.remove_late(remove, 500)
