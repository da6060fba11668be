"""A small fleet beside a server under load, with a database of its own in the server's PostgreSQL."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path

import anyio
import httpx
import msgspec

from bench.load.site import Site, make_accounts, started_site
from service.db.connection import open_connection
from service.postgres_embedded import embedded_postgres
from tests.fleet.nats import NatsServer, nats_server
from tests.integration.storage.servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, s3_server
from tests.support.server import EXECUTED, Server, running_server

GATEWAY, OVERFLOW, WORKER = "gateway", "overflow", "worker"
MEMBERS = {GATEWAY: ("serve", "--role", "gateway"), WORKER: ("worker",), OVERFLOW: ("serve",)}
"""The fleet's processes with their commands. `overflow` converts, hands over what is too much for it, and takes jobs
from the queue when it is idle; with one converter, it hands over from the third file on."""
READY_SECONDS = 180.0
_DATABASE = "fleet"


class BenchFleet(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of a fleet by name, and the two of them that clients may use, as sites."""

    members: Mapping[str, Server]
    entrances: tuple[Site, ...]
    dsn: str
    settings: Mapping[str, str]
    nats: NatsServer
    s3: S3Server


@contextmanager
def fleet_beside(server: Server) -> Iterator[BenchFleet]:
    """Run a gateway, a worker, an overflowing server, NATS and an S3 server inside the block.

    `server` has an embedded database, which must stay for as long as the fleet.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="geomill-bench-fleet-")))
        for name in ("nats", "s3"):
            (directory / name).mkdir()
        nats = stack.enter_context(nats_server(directory / "nats"))
        s3 = stack.enter_context(s3_server(directory / "s3"))
        dsn = anyio.run(_create_database, server.data_dir)
        settings = {
            "GEOMILL_NATS_URL": nats.url,
            "GEOMILL_S3_ENDPOINT": s3.url,
            "GEOMILL_S3_BUCKET": BUCKET,
            "GEOMILL_S3_ACCESS_KEY": ACCESS_KEY,
            "GEOMILL_S3_SECRET_KEY": SECRET_KEY,
            "GEOMILL_CONVERTERS": "1",
            "GEOMILL_PRIVATE_PORT": "0",
        }
        members = {
            name: stack.enter_context(
                running_server(directory / name, dsn, settings, program=EXECUTED, command=command)
            )
            for name, command in MEMBERS.items()
        }
        _await_workers(members[GATEWAY])
        keys = anyio.run(make_accounts, dsn)
        yield BenchFleet(
            members=members,
            entrances=tuple(started_site(members[name], keys, None) for name in (GATEWAY, OVERFLOW)),
            dsn=dsn,
            settings=settings,
            nats=nats,
            s3=s3,
        )


def _await_workers(gateway: Server) -> None:
    give_up_at = time.monotonic() + READY_SECONDS
    while httpx.get(f"{gateway.private_url}/readyz", timeout=READY_SECONDS).status_code != HTTPStatus.OK:
        if time.monotonic() > give_up_at:
            raise SystemExit("The fleet's gateway did not find its worker.")
        time.sleep(0.2)


async def _create_database(data_dir: Path) -> str:
    async with embedded_postgres(data_dir) as dsn:
        async with open_connection(dsn) as connection:
            await connection.execute(f"CREATE DATABASE {_DATABASE}")
        return dsn.replace(":///postgres?", f":///{_DATABASE}?")
