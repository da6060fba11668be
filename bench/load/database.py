"""A PostgreSQL with the project's schema, durable on this host's disk, filled by SQL."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

from service.db.migrate import migrate
from service.db.pool import Connection, Database, Watch, open_pool
from service.ids import AccountId
from service.postgres_embedded import embedded_postgres

FILL_SECONDS = 600.0

_PLAN = """
INSERT INTO plan (id, owner, monthly_conversions, monthly_data_bytes, max_file_bytes, retention_hours,
                  storage_region_choice)
VALUES ('bench', 'organization', 2000000000, 1::bigint << 60, 1 << 30, 48, false)
"""
_ACCOUNTS = """
WITH made AS (SELECT gen_random_uuid() AS id FROM generate_series(1, $1)),
payers AS (INSERT INTO payer (id, plan_id) SELECT id, 'bench' FROM made)
SELECT id FROM made
"""
_MEMBERS = """
INSERT INTO account (id, name, payer_id, created_at) SELECT id, 'bench', id, now() FROM unnest($1::uuid[]) AS id
"""


@asynccontextmanager
async def open_cluster() -> AsyncIterator[str]:
    """Start a PostgreSQL for this run and yield its address."""
    with tempfile.TemporaryDirectory(prefix="geomill-bench-") as directory:
        async with embedded_postgres(Path(directory)) as dsn:
            yield dsn


@asynccontextmanager
async def open_database(dsn: str, name: str = "bench", watch: Watch | None = None) -> AsyncIterator[Database]:
    """Make a database with the project's schema on that PostgreSQL, and a plan that nothing exhausts."""
    async with open_pool(dsn, max_size=1) as server, server.connection() as connection:
        await connection.execute(f"CREATE DATABASE {name}")
    own_dsn = dsn.replace(f"{urlsplit(dsn).path}?", f"/{name}?", 1)
    await migrate(own_dsn)
    async with open_pool(own_dsn, command_timeout_seconds=FILL_SECONDS, watch=watch) as database:
        await database.execute(_PLAN)
        yield database


async def make_accounts(connection: Connection, count: int) -> list[AccountId]:
    """Make accounts, each with an allowance of its own."""
    rows = await connection.fetch(_ACCOUNTS, count)
    ids: list[UUID] = [row["id"] for row in rows]
    await connection.execute(_MEMBERS, ids)
    return [AccountId(account) for account in ids]
