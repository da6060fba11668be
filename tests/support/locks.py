"""Waits of a test's database for locks."""

import anyio

from service.db.pool import Connection


async def until_one_waits(connection: Connection) -> None:
    """Wait until a statement of any session waits for what another transaction has locked."""
    while not await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110 -- the database does not tell
        await anyio.sleep(0.01)
