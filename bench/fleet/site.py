"""A whole fleet on hosts of its own: PostgreSQL that is durable, NATS, an S3 server, gateways and workers."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from bench.fleet.clients import Keys
from bench.fleet.hosts import LOOPBACK, Host
from bench.load.site import make_accounts
from service.db.migrate import migrate
from service.db.pool import open_pool
from service.metering.ledger import publish_plans
from service.postgres_embedded.server_user import find_server_user
from tests.fleet.nats import nats_server
from tests.fleet.site import Site
from tests.integration.storage.servers import S3Server, s3_server
from tests.support.replication import PostgresServer

ACCOUNTS = 8
NATS_LIMITS = ("env", "GOMEMLIMIT=128MiB", "GOMAXPROCS=1")
"""NATS as docs/fleet.md recommends it: it keeps no more memory than that for reuse, and uses one core."""
S3_OPTIONS = ("--no-checksum", "--ignore-checksum", "--etag-hash=")
"""This S3 server, which shares the cores with what is measured, would otherwise compute the MD5 of an object twice when
it is written, and again whenever it is read; it still does so once."""


class WholeFleet:
    """The fleet, its hosts by name, and the servers that it relies on."""

    def __init__(self, site: Site, postgres: PostgresServer, hosts: Mapping[str, Host]) -> None:
        self.site = site
        self.postgres = postgres
        self.hosts = hosts

    def keys(self) -> Keys:
        """Make accounts."""
        *good, spent = (key.api_key for key in anyio.run(make_accounts, self.site.dsn, ACCOUNTS))
        return Keys(tuple(good), spent)


@contextmanager
def whole_fleet(
    make_host: Callable[[str], Host],
    gateways: int,
    workers: int,
    settings: Mapping[str, str] | None = None,
    store: type[S3Server] = S3Server,
) -> Iterator[WholeFleet]:
    """Start a fleet and stop it in the end; `settings` are those of its gateways and workers."""
    names = [f"gateway-{number + 1}" for number in range(gateways)]
    names += [f"worker-{number + 1}" for number in range(workers)]
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geomill-fleet-")))
        hosts = {name: make_host(name) for name in ("postgres", "nats", "s3", *names)}
        postgres = _postgres(directory, hosts["postgres"])
        stack.callback(postgres.kill)
        for name in ("s3", "nats"):
            (directory / name).mkdir()
        s3 = stack.enter_context(
            s3_server(directory / "s3", *S3_OPTIONS, address=hosts["s3"].address, prefix=hosts["s3"].prefix, kind=store)
        )
        nats_prefix = (*hosts["nats"].prefix, *NATS_LIMITS)
        nats = stack.enter_context(nats_server(directory / "nats", hosts["nats"].address, nats_prefix))
        portal: BlockingPortal = stack.enter_context(start_blocking_portal())
        site = Site(
            portal,
            directory,
            postgres.dsn,
            s3,
            nats,
            gateways=[hosts[name] for name in names[:gateways]],
            workers=[hosts[name] for name in names[gateways:]],
            settings=settings,
        )
        stack.callback(site.end)
        site.await_workers()
        yield WholeFleet(site, postgres, hosts)


class Bare(NamedTuple):
    """PostgreSQL and NATS on the loopback, with no gateway and no worker."""

    dsn: str
    nats: str
    pids: dict[str, int]


@contextmanager
def bare_site() -> Iterator[Bare]:
    """Start both, and stop them in the end."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geomill-fleet-")))
        postgres = _postgres(directory, LOOPBACK)
        stack.callback(postgres.kill)
        (directory / "nats").mkdir()
        nats = stack.enter_context(nats_server(directory / "nats", prefix=NATS_LIMITS))
        yield Bare(postgres.dsn, nats.url, {"PostgreSQL": postgres.pid, "NATS": nats.pid})


def _postgres(directory: Path, host: Host) -> PostgresServer:
    place, user = directory / "postgres", find_server_user()
    place.mkdir()
    if user.switched:
        directory.chmod(0o711)
        os.chown(place, user.uid, user.gid)
    server = PostgresServer(place, host.address, host.prefix)
    server.create()
    server.start()
    anyio.run(_prepare, server.dsn)
    return server


async def _prepare(dsn: str) -> None:
    await migrate(dsn)
    async with open_pool(dsn, max_size=1) as database:
        await publish_plans(database)
