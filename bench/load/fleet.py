"""A small fleet beside a server under load."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import anyio
import msgspec

from bench.fleet.comparing import executed
from bench.fleet.site import whole_fleet
from bench.load.site import Site, make_accounts, started_site
from tests.fleet.nats import NatsServer
from tests.integration.storage.servers import S3Server
from tests.support.server import Server

GATEWAY, OVERFLOW, WORKER = MEMBERS = ("gateway", "overflow", "worker")
"""The fleet's processes. `overflow` converts, hands over what is too much for it, and takes jobs from the queue when it
is idle; with one converter, it hands over from the third file on."""
LEASE_SECONDS = 30


class BenchFleet(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of a fleet by name, and the two of them that clients may use, as sites."""

    members: Mapping[str, Server]
    entrances: tuple[Site, ...]
    dsn: str
    settings: Mapping[str, str]
    nats: NatsServer
    s3: S3Server


@contextmanager
def small_fleet() -> Iterator[BenchFleet]:
    """Run a gateway, a worker, an overflowing server, PostgreSQL, NATS and an S3 server inside the block."""
    with whole_fleet(executed, 1, 1, {"GEOMILL_LEASE_SECONDS": str(LEASE_SECONDS)}) as fleet:
        site = fleet.site
        overflow = site.start(OVERFLOW, ("serve",), executed(OVERFLOW))
        members = {GATEWAY: site.gateway, WORKER: site.workers[0], OVERFLOW: overflow}
        keys = anyio.run(make_accounts, site.dsn)
        yield BenchFleet(
            members=members,
            entrances=tuple(started_site(members[name], keys, None) for name in (GATEWAY, OVERFLOW)),
            dsn=site.dsn,
            settings=site.settings,
            nats=site.nats,
            s3=site.s3,
        )
