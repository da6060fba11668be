"""Two servers, a durable PostgreSQL that can be killed, an S3 server, and a tap on every connection between them."""

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from service.accounts.administration import Account, Administration, CreatedKey, Terms
from service.app.storage import open_storage
from service.clock import utc_now
from service.db.migrate import migrate
from service.db.pool import Database, open_pool
from service.errors import DatabaseUnavailable
from service.ids import AccountId
from service.jobs.register import JobRegister
from service.metering.ledger import Ledger
from service.metering.pricing import Pricing
from service.postgres_embedded import embedded_postgres
from service.postgres_embedded.home import SOCKET_NAME
from service.settings import Settings
from service.storage.port import ObjectKey, Storage, new_key
from service.usecases.audit import audit
from tests.database import fast_directory
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server
from tests.schedules.tap import OfPostgres, OfS3, Tap
from tests.support.database_time import far_ahead
from tests.support.jobs import settlement
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.server import Server, running_server

LEASE_SECONDS = 5
"""Longer than a busy host may keep a server from renewing it."""
_LIVELY = "SELECT FROM server WHERE heartbeat_at BETWEEN service_time() - $1::interval AND service_time()"
STORE_SECONDS = 60
"""How long a request to the store may take, a third of it in silence: longer than schedules hold one or suspend its
sender. A client that gave up and asked again would race with the first request in the store, whose listing then lacks
what it has stored now and then (rclone)."""
"""How long anything may take on a host that has much else to do; nothing is judged by it but that it ends at all."""


class Node:
    """One server with its taps."""

    def __init__(self, site: "Site", name: str) -> None:
        self.name = name
        self._site = site
        self._stack = ExitStack()
        self.database = site.portal.call(Tap, OfPostgres, site.socket)
        socket = site.directory / f"{name}-postgres"
        socket.mkdir()
        site.portal.call(self.database.listen, socket / site.socket.name)
        self._dsn = site.dsn.replace(quote(str(site.socket.parent), safe=""), quote(str(socket), safe=""))
        assert self._dsn != site.dsn
        self.store = site.portal.call(Tap, OfS3, site.s3.host_and_port())
        site.portal.call(self.store.listen)
        self.server: Server
        self.start()

    def start(self) -> None:
        """Start the server, with taps that hold nothing."""
        self.mend()
        settings = {
            **self._site.store_settings,
            "GEOMILL_S3_ENDPOINT": f"http://127.0.0.1:{self.store.port}",
            "GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS),
            "GEOMILL_CONVERTERS": "2",
        }
        data_dir = self._site.directory / self.name
        self.server = self._stack.enter_context(running_server(data_dir, self._dsn, settings))

    def mend(self) -> None:
        """Let everything pass."""
        self.database.mend()
        self.store.mend()

    def freeze(self) -> None:
        """Suspend the process, wherever it is in its work."""
        self.server.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Resume the process."""
        self.server.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill -9 the process."""
        self.server.process.kill()
        self.server.process.wait()

    def end(self) -> None:
        """Stop the server, whatever its state."""
        with suppress(ProcessLookupError):
            self.wake()
        self.mend()
        if self.server.process.poll() is None:
            self.kill()
        self._stack.close()
        for tap in (self.database, self.store):
            self._site.portal.call(tap.end)

    def revive(self) -> None:
        """Restore everything here, restarting the server if necessary."""
        self.wake()
        self.mend()
        if self.server.process.poll() is not None:
            self._stack.close()
            self._stack = ExitStack()
            self.start()


class Site:
    """The whole site, with direct access to the database and the store for tests."""

    def __init__(self, portal: BlockingPortal, directory: Path, dsn: str, s3: S3Server) -> None:
        self.portal = portal
        self.directory = directory
        self.dsn = dsn
        self.s3 = s3
        self.socket = Path(parse_qs(urlsplit(dsn).query)["host"][0]) / SOCKET_NAME
        self.store_settings = {
            "GEOMILL_S3_BUCKET": BUCKET,
            "GEOMILL_S3_ACCESS_KEY": ACCESS_KEY,
            "GEOMILL_S3_SECRET_KEY": SECRET_KEY,
            "GEOMILL_S3_TIMEOUT_SECONDS": str(STORE_SECONDS),
        }
        self._stack = ExitStack()
        self._database: Database = self._enter(open_pool(dsn))
        own = Settings(
            s3_bucket=BUCKET, s3_access_key=ACCESS_KEY, s3_secret_key=SECRET_KEY, s3_endpoint=s3.url, data_dir="unused"
        )
        self._storage: Storage = self._enter(open_storage(own))
        self.nodes = [Node(self, name) for name in ("a", "b")]

    def _enter(self, context: Any) -> Any:
        return self._stack.enter_context(self.portal.wrap_async_context_manager(context))

    def account(self, terms: Terms) -> tuple[Account, CreatedKey]:
        """Create an account."""
        return self.portal.call(Administration(self._database, utc_now).create_account, "schedule", terms)

    def administer(self, what: str, *arguments: object) -> Any:
        """Call a method of `Administration` by its name; raises what it raises, and if the database is away."""
        return self.portal.call(getattr(Administration(self._database, utc_now), what), *arguments)

    def rows(self, query: str, *arguments: object) -> list[dict[str, Any]]:
        """The rows that a statement returns, once the database answers."""
        return self.portal.call(self._rows, query, arguments)

    async def _rows(self, query: str, arguments: tuple[object, ...]) -> list[dict[str, Any]]:
        while True:
            try:
                async with self._database.connection() as connection:
                    return [dict(row) for row in await connection.fetch(query, *arguments)]
            except DatabaseUnavailable:
                await anyio.sleep(0.05)

    def await_calm(self) -> None:
        """Wait until every server holds its lease again and has no work left.

        The others fail the jobs of one that was cut off too long, and a hold would take a statement of former work.
        """
        wait_until(lambda: len(self.rows(_LIVELY, timedelta(seconds=LEASE_SECONDS / 2))) >= len(self.nodes))
        for node in self.nodes:
            assert not node.server.wait_until_idle(PATIENCE_SECONDS)

    def audit(self) -> list[str]:
        """The differences between ledger, jobs and store."""
        return self.portal.call(audit, self._database, self._storage)

    def sweep(self) -> None:
        """Remove what the service removes every minute, and look again under all abandoned keys."""
        self.portal.call(self._sweep)

    async def _sweep(self) -> None:
        register = JobRegister(self._database)

        async def remove(keys: list[str]) -> None:
            await self._storage.delete([ObjectKey(key) for key in keys])

        await register.dispose(remove, timedelta(0), far_ahead, 500)
        async with self._database.connection() as connection:
            await connection.execute("UPDATE late_object SET next_at = now()")
        await register.remove_late(remove, 500)

    def take_over(self, account_id: AccountId) -> "OtherAttempt":
        """Give the account's only job to another process, in a new attempt."""
        [row] = self.rows(
            "WITH taker AS (INSERT INTO server VALUES (gen_random_uuid(), now(), now() + interval '1 h') RETURNING id) "
            "UPDATE job SET attempt = attempt + 1, object_key = $2, server_id = taker.id FROM taker "
            "WHERE account_id = $1 RETURNING job.id, attempt, object_key",
            account_id,
            new_key(),
        )
        return OtherAttempt(self, row)

    async def put_and_settle(self, row: Mapping[str, Any]) -> bool:
        """Store an object for a job and settle it, in the attempt of `row`."""
        output = self.directory / "output"
        output.write_bytes(b"of the other attempt")
        key = ObjectKey(row["object_key"])
        await self._storage.put(key, output, media_type="text/csv", download_name="a.csv")
        settled = settlement(row["id"], row["attempt"], len(output.read_bytes()))
        return await Ledger(self._database, Pricing()).settle(settled) is not None

    def crash_database(self) -> None:
        """Kill PostgreSQL, and wait until its keeper has restarted it."""
        [path] = (self.directory / "database").rglob("postmaster.pid")
        killed = int(path.read_text().split()[0])
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: _first_line(path) not in {"", str(killed)})
        self.rows("SELECT 1")

    def end(self) -> None:
        """Stop everything."""
        for node in self.nodes:
            node.end()
        self._stack.close()


class OtherAttempt:
    """Another process's attempt of a job."""

    def __init__(self, site: Site, row: Mapping[str, Any]) -> None:
        self._site = site
        self._row = row

    def complete(self) -> bool:
        """Complete the job; return whether this attempt still held it."""
        was_settled: bool = self._site.portal.call(self._site.put_and_settle, self._row)
        return was_settled


def _first_line(path: Path) -> str:
    with suppress(FileNotFoundError, IndexError):
        return path.read_text().split()[0]
    return ""


@contextmanager
def running_site() -> Iterator[Site]:
    """Start everything; a kill of PostgreSQL loses what was committed asynchronously, as on a slow disk."""
    with (
        fast_directory() as directory,
        tempfile.TemporaryDirectory(prefix="s3-") as store,
        start_blocking_portal() as portal,
        s3_server(_directory(Path(store) / "s3")) as s3,
    ):
        cluster = embedded_postgres(directory / "database", durable=True)
        with portal.wrap_async_context_manager(cluster) as dsn:
            portal.call(migrate, dsn)
            portal.call(_forget_late, dsn)
            site = Site(portal, directory, dsn, s3)
            try:
                yield site
            finally:
                site.end()


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


async def _forget_late(dsn: str) -> None:
    async with open_pool(dsn, max_size=1) as database, database.connection() as connection:
        await connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        await connection.execute("SELECT pg_reload_conf()")
