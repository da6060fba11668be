"""The pool against a real server."""

from collections.abc import AsyncIterator

import anyio
import asyncpg
import pytest

from service.db.pool import Database, open_pool
from service.errors import DatabaseUnavailable, Overloaded


@pytest.fixture
async def database(empty_database_url: str) -> AsyncIterator[Database]:
    async with open_pool(empty_database_url, max_size=2, acquire_timeout_seconds=0.2) as database:
        yield database


async def test_json_columns_are_python_objects(database: Database) -> None:
    """What is stored as jsonb comes back as the same object."""
    value = {"fields": ["ä", 1, None], "n": 1.5}
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT $1::jsonb", value) == value


async def test_session_is_set_up(database: Database) -> None:
    """Connections name the service, live in UTC and compile nothing."""
    async with database.connection() as connection:
        shown = [await connection.fetchval(f"SHOW {name}") for name in ("application_name", "timezone", "jit")]
    assert shown == ["geomill", "UTC", "off"]


async def test_transaction_takes_effect_as_a_whole(database: Database) -> None:
    """A transaction whose block raises leaves nothing; one that ends stays."""

    async def insert_and_fail() -> None:
        async with database.transaction() as connection:
            await connection.execute("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    async with database.connection() as connection:
        await connection.execute("CREATE TABLE t (n int)")
    with pytest.raises(ZeroDivisionError):
        await insert_and_fail()
    async with database.transaction() as connection:
        await connection.execute("INSERT INTO t VALUES (2)")
    async with database.connection() as connection:
        assert [row["n"] for row in await connection.fetch("SELECT n FROM t")] == [2]


async def test_cancelled_transaction_leaves_a_clean_connection(empty_database_url: str) -> None:
    """A transaction that is cancelled in the middle of a statement is undone before another gets the connection."""
    async with open_pool(empty_database_url, max_size=1) as database:
        async with database.connection() as connection:
            await connection.execute("CREATE TABLE t (n int)")
        with anyio.move_on_after(0.05):
            async with database.transaction() as connection:
                await connection.execute("INSERT INTO t VALUES (1)")
                await connection.execute("SELECT pg_sleep(60)")
        async with database.connection() as connection:
            assert not connection.is_in_transaction()
            assert await connection.fetchval("SELECT count(*) FROM t") == 0


async def test_violated_constraint_is_the_callers(database: Database) -> None:
    """A statement's own failure is not mistaken for an unreachable database."""
    async with database.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("CREATE TABLE t (n int CHECK (n > 0)); INSERT INTO t VALUES (0)")
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.connection() as connection:
            await connection.execute("SELECT * FROM nowhere")


async def test_taken_connections_are_overload(database: Database) -> None:
    """When every connection stays taken, the next caller is told to come back."""
    async with database.connection(), database.connection():
        with pytest.raises(Overloaded) as caught:
            async with database.connection():
                pass
    assert caught.value.retry_after_seconds > 0


async def test_slow_statement_is_overload(empty_database_url: str) -> None:
    """A statement that takes too long is given up, and its connection serves on."""
    async with open_pool(empty_database_url, max_size=1, command_timeout_seconds=0.1) as database:
        with pytest.raises(DatabaseUnavailable):
            async with database.connection() as connection:
                await connection.execute("SELECT pg_sleep(60)")
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1


async def test_lost_connection_is_overload_and_is_replaced(database: Database) -> None:
    """A connection that the server ends in the middle of a statement is translated, and the next one works."""
    with pytest.raises(DatabaseUnavailable) as caught:
        async with database.connection() as connection:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert isinstance(caught.value.__cause__, asyncpg.PostgresError)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_connection_lost_between_statements_is_overload(database: Database) -> None:
    """A connection that ended while its holder was busy elsewhere is translated too."""

    async def lose_and_ask() -> None:
        async with database.connection() as doomed:
            ended = anyio.Event()
            doomed.add_termination_listener(lambda _: ended.set())
            async with database.connection() as other:
                await other.execute("SELECT pg_terminate_backend($1)", doomed.get_server_pid())
            await ended.wait()
            await doomed.fetchval("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        await lose_and_ask()


@pytest.mark.parametrize(
    "dsn",
    ["postgresql:///x?host=/nonexistent", "postgresql://127.0.0.1:1/x"],
    ids=["no socket", "nothing listens"],
)
async def test_unreachable_database_is_overload(dsn: str) -> None:
    """A database that is not there is said to be unavailable, without a word about where it should be."""
    with pytest.raises(DatabaseUnavailable) as caught:
        async with open_pool(dsn):
            pass
    assert "nonexistent" not in caught.value.message
    assert "127" not in caught.value.message


@pytest.mark.parametrize(("right", "wrong"), [("/test_", "/absent_"), ("user=", "user=not_")])
async def test_refused_login_is_overload(empty_database_url: str, right: str, wrong: str) -> None:
    """A server that lacks the database, or refuses the user, counts as unavailable."""
    with pytest.raises(DatabaseUnavailable):
        async with open_pool(empty_database_url.replace(right, wrong)):
            pass
