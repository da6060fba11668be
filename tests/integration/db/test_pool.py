"""The pool on a real server."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import anyio
import asyncpg
import pytest

from service.db import pool
from service.db.connection import open_connection
from service.db.pool import Database, open_pool
from service.errors import DatabaseUnavailable, Overloaded
from service.postgres_embedded.home import SOCKET_NAME
from tests.database import TestServer, database_name
from tests.support.patience import PATIENCE_SECONDS
from tests.support.relay import CHUNK, Pump, Relay, Way, copy, listening, relayed_database

ADMIN_SHUTDOWN = b"57P01"


@pytest.fixture
async def database(empty_database_url: str) -> AsyncIterator[Database]:
    async with open_pool(empty_database_url, max_size=2, acquire_timeout_seconds=PATIENCE_SECONDS) as database:
        yield database


async def test_json_columns_are_python_objects(database: Database) -> None:
    """A value stored as jsonb is read as an equal object."""
    value = {"fields": ["ä", 1, None], "n": 1.5}
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT $1::jsonb", value) == value


async def test_session_is_set_up(database: Database) -> None:
    """Connections name the service, use UTC and disable just-in-time compilation."""
    async with database.connection() as connection:
        shown = [await connection.fetchval(f"SHOW {name}") for name in ("application_name", "timezone", "jit")]
    assert shown == ["geomill", "UTC", "off"]


async def test_statements_see_what_others_have_committed(postgres: TestServer, empty_database_url: str) -> None:
    """Also where the database isolates transactions more strictly unless they ask for less."""
    name = database_name(empty_database_url)
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = serializable")
    async with open_pool(empty_database_url, max_size=1) as database:
        assert await database.fetchval("SHOW transaction_isolation") == "read committed"


async def test_a_refusal_for_the_sake_of_isolation_can_be_repeated(empty_database_url: str) -> None:
    """PostgreSQL has undone all of the statement."""
    async with open_pool(empty_database_url, max_size=2) as database:
        await database.execute("CREATE TABLE counter AS SELECT 0 AS n")

        async def count_late() -> None:
            async with database.connection() as late, late.transaction(isolation="repeatable_read"):
                assert await late.fetchval("SELECT n FROM counter") == 0
                await database.execute("UPDATE counter SET n = n + 1")
                await late.execute("UPDATE counter SET n = n + 1")

        with pytest.raises(DatabaseUnavailable):
            await count_late()
        assert await database.fetchval("SELECT n FROM counter") == 1


async def test_every_statement_is_watched(empty_database_url: str) -> None:
    """With arguments or without, also those that begin and commit a transaction, whatever their outcome."""
    watched: list[float] = []
    async with open_pool(empty_database_url, max_size=1, watch=lambda _name, seconds: watched.append(seconds)) as pool:
        async with pool.connection() as connection:
            watched.clear()
            await connection.fetchval("SELECT $1::int", 1)
            await connection.execute("SELECT 1")
            with suppress(asyncpg.PostgresError):
                await connection.fetch("SELECT 1/0")
            assert len(watched) == 3
        watched.clear()
        async with pool.transaction() as connection:
            await connection.execute("SELECT 1")
        assert len(watched) == 3


async def test_transaction_takes_effect_as_a_whole(database: Database) -> None:
    """A transaction whose block raises leaves nothing; one that ends is committed."""

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
    """A transaction cancelled during a statement is rolled back before another caller gets the connection."""
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
    """A failing statement is not mistaken for an unreachable database."""
    async with database.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("CREATE TABLE t (n int CHECK (n > 0)); INSERT INTO t VALUES (0)")
    with pytest.raises(asyncpg.UndefinedTableError):
        async with database.connection() as connection:
            await connection.execute("SELECT * FROM nowhere")


async def test_taken_connections_are_overload(database: Database) -> None:
    """While all connections are taken, the next caller is asked to retry."""
    async with database.connection(), database.connection():
        database.acquire_timeout_seconds = 0.2
        with pytest.raises(Overloaded) as caught:
            async with database.connection():
                pass
    assert caught.value.retry_after_seconds > 0


async def _answered_in_line(database: Database, callers: int) -> list[Any]:
    """What callers get who ask at the same time, each for a statement of half a second: its result or an error."""
    statement = "SELECT pg_sleep(0.5)::text"
    return [*await asyncio.gather(*(database.fetchval(statement) for _ in range(callers)), return_exceptions=True)]


async def test_a_caller_waits_longer_while_the_database_answers_others(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line for a connection is longer than the time after which a silent database counts as away."""
    monkeypatch.setattr(pool, "MOST_PATIENCE", 100)
    async with open_pool(empty_database_url, max_size=1, acquire_timeout_seconds=2) as database:
        assert await _answered_in_line(database, 7) == [""] * 7


async def test_a_caller_does_not_wait_for_ever_although_the_database_answers_others(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first in the line are served; those who give up are asked to retry."""
    monkeypatch.setattr(pool, "MOST_PATIENCE", 1)
    async with open_pool(empty_database_url, max_size=1, acquire_timeout_seconds=1) as database:
        first, *others = await _answered_in_line(database, 7)
        assert first == ""
        assert DatabaseUnavailable in map(type, others)
        assert await database.fetchval("SELECT 1") == 1


async def test_a_process_that_had_no_core_does_not_take_the_database_for_silent(empty_database_url: str) -> None:
    """It could not have heard any answer, so the time does not count."""
    async with (
        open_pool(empty_database_url, max_size=1, acquire_timeout_seconds=PATIENCE_SECONDS) as database,
        asyncio.TaskGroup() as tasks,
    ):
        async with database.connection() as connection:
            database.acquire_timeout_seconds = 1
            waiting = tasks.create_task(database.fetchval("SELECT 2"))
            await anyio.wait_all_tasks_blocked()
            time.sleep(2)  # noqa: ASYNC251 -- as if another process had the core
            assert await connection.fetchval("SELECT 1") == 1
        assert await waiting == 2


async def test_a_connection_that_is_slow_to_open_is_not_waited_for_if_another_becomes_free(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database answers, so it is not away."""
    monkeypatch.setattr(pool, "CONNECT_SECONDS", 1)
    async with (
        relayed_database(empty_database_url, tmp_path) as (relay, relayed),
        open_pool(relayed, max_size=2, acquire_timeout_seconds=PATIENCE_SECONDS) as database,
        asyncio.TaskGroup() as tasks,
    ):
        async with database.connection() as first:
            assert await first.fetchval("SELECT 1") == 1
            relay.silence(old=False, new=True)
            waiting = tasks.create_task(database.fetchval("SELECT 2"))
            await anyio.wait_all_tasks_blocked()
        assert await waiting == 2


async def test_idle_connections_are_closed_but_for_one(empty_database_url: str) -> None:
    """Connections opened under load are closed when they are no longer needed."""
    opened = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    async with open_pool(empty_database_url, max_size=4, idle_seconds=0.2) as database:
        async with database.connection(), database.connection(), database.connection() as connection:
            assert await connection.fetchval(opened) == 3
        with anyio.fail_after(PATIENCE_SECONDS):
            count = 3
            while count > 1:
                await anyio.sleep(0.3)
                async with database.connection() as connection:
                    count = await connection.fetchval(opened)


async def test_slow_statement_is_overload(empty_database_url: str) -> None:
    """A statement that takes too long is cancelled, and its connection remains usable."""
    async with open_pool(empty_database_url, max_size=1, command_timeout_seconds=2.0) as database:
        with pytest.raises(DatabaseUnavailable):
            async with database.connection() as connection:
                await connection.execute("SELECT pg_sleep(60)")
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1


async def test_a_lock_that_the_server_waits_for_no_longer_is_overload(
    postgres: TestServer, empty_database_url: str
) -> None:
    """Where its operator limits such waits, the statement can be repeated."""
    postgres.execute(f"ALTER DATABASE {database_name(empty_database_url)} SET lock_timeout = '10ms'")
    async with open_pool(empty_database_url, max_size=2) as database:
        await database.execute("CREATE TABLE counter AS SELECT 0 AS n")
        async with database.transaction() as other:
            await other.execute("UPDATE counter SET n = n + 1")
            with pytest.raises(DatabaseUnavailable):
                await database.execute("UPDATE counter SET n = n + 1")
        await database.execute("UPDATE counter SET n = n + 1")
        assert await database.fetchval("SELECT n FROM counter") == 2


async def test_lost_connection_is_overload_and_is_replaced(database: Database) -> None:
    """A connection that the server ends during a statement raises Overloaded, and the next one works."""
    with pytest.raises(DatabaseUnavailable) as caught:
        async with database.connection() as connection:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert isinstance(caught.value.__cause__, asyncpg.PostgresError)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_connection_that_ends_while_nobody_has_it_is_replaced(empty_database_url: str) -> None:
    """The next caller does not notice."""
    async with open_pool(empty_database_url, max_size=1) as database:
        ended = anyio.Event()
        async with database.connection() as doomed:
            doomed.add_termination_listener(lambda _: ended.set())
            backend = doomed.get_server_pid()
        await _terminate(empty_database_url, backend)
        await ended.wait()
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1


async def test_who_waits_for_a_connection_gets_the_next_that_is_given_back(empty_database_url: str) -> None:
    """The connection is not held back for a later caller."""
    served = list[int]()

    async def ask(database: Database, number: int) -> None:
        async with database.connection() as connection:
            served.append(await connection.fetchval("SELECT $1::int", number))

    async with open_pool(empty_database_url, max_size=1, acquire_timeout_seconds=PATIENCE_SECONDS) as database:
        async with anyio.create_task_group() as tasks, database.connection() as connection:
            for number in range(5):
                tasks.start_soon(ask, database, number)
            await anyio.wait_all_tasks_blocked()
            await connection.fetchval("SELECT 1")
        assert sorted(served) == [0, 1, 2, 3, 4]


async def test_connection_lost_between_statements_is_overload(database: Database) -> None:
    """A connection that ended while its holder was busy elsewhere also raises Overloaded."""

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


class Farewell(Relay):
    """A relay that does not pass on that the server has ended a connection, only its last words."""

    parting: asyncio.Event

    def pumps(self, up: Way, down: Way) -> tuple[Pump, Pump]:
        """See `Relay`."""
        self.parting = asyncio.Event()
        return copy(*up), self._tell(*down, self.parting)

    async def _tell(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parting: asyncio.Event) -> None:
        said = b""
        while chunk := await reader.read(CHUNK):
            said = chunk
            writer.write(chunk)
        if ADMIN_SHUTDOWN in said:
            parting.set()
            await asyncio.Event().wait()


async def test_farewell_without_an_end_is_overload_and_the_connection_is_replaced(
    empty_database_url: str, tmp_path: Path
) -> None:
    """A connection whose server announced its end without closing counts as lost, and the next one works."""
    relay = Farewell(lambda: asyncio.open_unix_connection(_socket_of(empty_database_url)))

    async def ask_after_parting(database: Database) -> None:
        async with database.connection() as connection:
            await _terminate(empty_database_url, connection.get_server_pid())
            await relay.parting.wait()
            await anyio.wait_all_tasks_blocked()
            await connection.fetchval("SELECT 1")

    async with (
        listening(relay, tmp_path / SOCKET_NAME),
        open_pool(_through(empty_database_url, tmp_path), max_size=1) as database,
    ):
        with pytest.raises(DatabaseUnavailable):
            await ask_after_parting(database)
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1


def _socket_of(dsn: str) -> str:
    return f"{parse_qs(urlsplit(dsn).query)['host'][0]}/{SOCKET_NAME}"


def _through(dsn: str, directory: Path) -> str:
    host = parse_qs(urlsplit(dsn).query)["host"][0]
    return dsn.replace(quote(host, safe=""), quote(str(directory), safe=""))


async def _terminate(dsn: str, backend: int) -> None:
    async with open_connection(dsn) as connection:
        await connection.execute("SELECT pg_terminate_backend($1)", backend)


@pytest.mark.parametrize(
    "dsn",
    ["postgresql:///x?host=/nonexistent", "postgresql://127.0.0.1:1/x"],
    ids=["no socket", "nothing listens"],
)
async def test_unreachable_database_is_overload(dsn: str) -> None:
    """The error says that the database is unavailable, without its address."""
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


async def test_one_silent_connection_is_a_warning_about_all(empty_database_url: str, tmp_path: Path) -> None:
    """If the other end has vanished silently, one statement finds out, and the next ones use new connections."""
    async with (
        relayed_database(empty_database_url, tmp_path) as (relay, relayed),
        open_pool(relayed, command_timeout_seconds=4.0) as database,
    ):
        async with (
            database.connection() as one,
            database.connection() as another,
            database.connection() as third,
            database.connection() as fourth,
        ):
            for connection in (one, another, third, fourth):
                await connection.execute("SELECT 1")
        relay.silence(new=False)
        with pytest.raises(DatabaseUnavailable):
            async with database.connection() as connection:
                await connection.execute("SELECT 1")
        async with database.connection() as one, database.connection() as another:
            assert await one.fetchval("SELECT 1") == await another.fetchval("SELECT 1") == 1
