"""Lanes on a real server."""

import anyio
import pytest

from service.db.connection_share import ConnectionShare
from service.db.pool import open_pool
from service.errors import DatabaseUnavailable


async def test_a_full_lane_is_unavailable_in_the_end_while_others_are_served(empty_database_url: str) -> None:
    """Who waits too long for a place raises what waiting for a connection raises, and no place is lost."""
    async with open_pool(empty_database_url, max_size=2, acquire_timeout_seconds=1) as database:
        lane = ConnectionShare(database, 1)
        async with lane.connection():
            with pytest.raises(DatabaseUnavailable):
                async with lane.connection():
                    pass
            async with database.connection() as other:
                assert await other.fetchval("SELECT 1") == 1
        async with lane.connection() as next_one:
            assert await next_one.fetchval("SELECT 2") == 2


async def test_a_place_in_a_lane_is_free_again_after_a_failure_or_a_cancellation(empty_database_url: str) -> None:
    """Also that of a caller who no longer waits."""
    async with open_pool(empty_database_url, max_size=2) as database:
        lane = ConnectionShare(database, 1)
        with pytest.raises(ZeroDivisionError):
            async with lane.connection():
                raise ZeroDivisionError

        async def wait() -> None:
            async with lane.connection():
                pass

        async with lane.connection(), anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        async with lane.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1
