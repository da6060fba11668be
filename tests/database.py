"""A PostgreSQL of its own for each test run, and a database of its own for each test that asks for `database_url`.

The server is the embedded one, without waiting for disks, in memory where the host has /dev/shm. It ends with the run,
even one that is killed. A database is a copy of a template that was migrated once.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from inspect import unwrap
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import asyncpg
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from service.db import connection, pool
from service.db.migrate import migrate
from service.postgres_embedded import embedded_postgres
from service.postgres_embedded.locks import can_lock
from tests.support.patience import PATIENCE_SECONDS

# Whoever uses a database in the process of the tests waits for it as long as for anything else.
connection.CONNECT_SECONDS = PATIENCE_SECONDS
pool.CONNECT_SECONDS = PATIENCE_SECONDS  # type: ignore[attr-defined]  # where pools look it up
for limit in ("command_timeout_seconds", "acquire_timeout_seconds"):
    unwrap(pool.open_pool).__kwdefaults__[limit] = PATIENCE_SECONDS

_PREFIX = "geomill-tests-"
_LEFT_BEHIND_SECONDS = 3600


class TestServer:
    """A running server for tests that may wait and for those that run in an event loop of their own."""

    __test__ = False

    def __init__(self, portal: BlockingPortal, dsn: str) -> None:
        self.dsn = dsn
        self._portal = portal
        self._template: str | None = None

    def execute(self, statement: str) -> None:
        """Run a statement outside of any transaction."""
        self._portal.call(_execute, self.dsn, statement)

    def create_database(self, template: str = "template0") -> str:
        """Copy `template` and return the address of the copy."""
        name = f"test_{uuid4().hex}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return self.dsn.replace(f"/{database_name(self.dsn)}?", f"/{name}?", 1)

    def drop_database(self, dsn: str) -> None:
        """Drop a database of `create_database`, whoever is still connected to it."""
        self.execute(f"DROP DATABASE {database_name(dsn)} WITH (FORCE)")

    def migrated_template(self) -> str:
        """Name a database that has the project's schema, made at the first call."""
        if self._template is None:
            dsn = self.create_database()
            self._portal.call(migrate, dsn)
            self._template = database_name(dsn)
        return self._template


def database_name(dsn: str) -> str:
    """The name of the database in an address."""
    return urlsplit(dsn).path.lstrip("/")


async def _execute(dsn: str, statement: str) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[TestServer]:
    """The run's PostgreSQL; without xdist one, with it one per worker."""
    with fast_directory() as directory, start_blocking_portal() as portal:
        server = embedded_postgres(directory, durable=False)
        with portal.wrap_async_context_manager(server) as dsn:
            yield TestServer(portal, dsn)


@pytest.fixture
def database_url(postgres: TestServer) -> Iterator[str]:
    """The address of a fresh database with the project's schema, dropped after the test."""
    dsn = postgres.create_database(postgres.migrated_template())
    yield dsn
    postgres.drop_database(dsn)


@pytest.fixture
def empty_database_url(postgres: TestServer) -> Iterator[str]:
    """The address of a fresh database with nothing in it, dropped after the test."""
    dsn = postgres.create_database()
    yield dsn
    postgres.drop_database(dsn)


@contextmanager
def fast_directory() -> Iterator[Path]:
    """A temporary directory in memory, where the host has it."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()  # noqa: S108 -- for being memory
    _remove_left_behind(Path(place))
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place) as directory:
        yield Path(directory)


def _remove_left_behind(place: Path) -> None:
    """Free the memory of runs that were killed."""
    for directory in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another run tidies up too, or it is another user's
            old = time.time() - directory.stat().st_mtime > _LEFT_BEHIND_SECONDS
            if old and all(can_lock(lock, exclusive=True) for lock in directory.rglob("users.lock")):
                shutil.rmtree(directory)
