"""One fleet for all tests of this directory."""

from collections.abc import Iterator

import pytest
from anyio.from_thread import start_blocking_portal

from tests.database import TestServer
from tests.fleet.nats import nats_server
from tests.fleet.site import Site
from tests.integration.storage.servers import s3_server
from tests.support.collector import Collector, running_collector
from tests.support.world import here, shared_world

__all__ = ["collector", "fleet", "here", "shared_fleet", "shared_world"]


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """What receives the traces of the fleet."""
    with running_collector() as running:
        yield running


@pytest.fixture(scope="session")
def shared_fleet(
    postgres: TestServer, tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[Site]:
    """A gateway, two workers, NATS, PostgreSQL and an S3 server."""
    directory = tmp_path_factory.mktemp("fleet")
    for name in ("s3", "nats"):
        (directory / name).mkdir()
    dsn = postgres.create_database(postgres.migrated_template())
    with (
        start_blocking_portal() as portal,
        s3_server(directory / "s3") as s3,
        nats_server(directory / "nats") as nats,
    ):
        traces = {"GEOMILL_TRACES_URL": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        site = Site(portal, directory, dsn, s3, nats, settings=traces)
        try:
            yield site
        finally:
            site.end()


@pytest.fixture
def fleet(shared_fleet: Site) -> Site:
    """The fleet with everything running, whatever the previous test did to it."""
    shared_fleet.revive()
    return shared_fleet
