"""Everything works behind PgBouncer in transaction mode, and nothing is left on its shared sessions."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from service.db.connection import is_pooled, open_connection
from service.db.migrate import migrate
from service.usecases.audit import audit
from tests.database import TestServer
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.patience import PATIENCE_SECONDS
from tests.support.pgbouncer import SERVERS, pgbouncer, through
from tests.support.world import world

pytestmark = pytest.mark.xdist_group("pgbouncer")  # which is installed where it is missing, once


@pytest.fixture(scope="module")
def port(postgres: TestServer) -> Iterator[int]:
    with pgbouncer(postgres) as port:
        yield port


@pytest.fixture
def pooled_url(port: int, database_url: str) -> str:
    """The address of the test's database through PgBouncer."""
    return through(port, database_url)


async def test_a_pooler_is_noticed(pooled_url: str, database_url: str) -> None:
    """Without a setting."""
    assert await is_pooled(pooled_url)
    assert not await is_pooled(database_url)


async def test_migrations_leave_no_lock_behind(port: int, empty_database_url: str) -> None:
    """Several at once through PgBouncer, another later, then one directly: none waits for the lock of an ended one."""
    pooled = through(port, empty_database_url)
    with anyio.fail_after(PATIENCE_SECONDS):
        for _ in range(2):
            async with anyio.create_task_group() as tasks:
                for _ in range(2 * SERVERS):
                    tasks.start_soon(migrate, pooled)
        assert (await migrate(empty_database_url)).applied == []
    async with open_connection(empty_database_url) as connection:
        assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


@pytest.mark.timeout(400)  # seven commands, each a process
async def test_commands_of_operators_may_follow_each_other(pooled_url: str, database_url: str, tmp_path: Path) -> None:
    """Each command ends, and so does the next, through PgBouncer or not."""
    geomill = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": pooled_url})
    assert geomill("migrate").returncode == 0
    account = geomill.json("account", "create", "--name", "a", "--plan", "free")
    for _ in range(2):
        assert geomill.json("audit") == {"differences": []}
    assert geomill.json("account", "set", account["accountId"], "--plan", "team")["plan"] == "team"
    direct = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": database_url})
    assert direct("migrate").returncode == 0
    assert direct.json("usage", account["accountId"])["usedConversions"] == 0


async def test_the_service_converts_and_counts_as_ever(pooled_url: str, tmp_path: Path) -> None:
    """Many conversions at once, in batches and repeated: all get responses, each counts once, and the books agree."""
    async with world(pooled_url, tmp_path, now=datetime.now(UTC), plan="team") as here:
        answers: list[bool] = []

        async def convert(number: int) -> None:
            headers = {"Idempotency-Key": str(number // 2)}
            files = {"file": ("a.geojson", lakes())}
            while True:
                response = await here.client.post("/api/geo/convert/upload", files=files, headers=headers)
                if response.status_code != 409:
                    break
                await anyio.sleep(0.05)
            answers.append(response.json()["success"])

        async with anyio.create_task_group() as tasks:
            for number in range(24):
                tasks.start_soon(convert, number)
        assert answers == [True] * 24
        batch = await here.client.post(
            "/api/geo/convert/batch", files=[("files", ("a.geojson", lakes())), ("files", ("b.geojson", b"{"))]
        )
        assert batch.json()["remainingConversions"] == 5000 - 13
        assert len((await here.client.get("/api/geo/convert/jobs")).json()["jobs"]) == 14
        assert await audit(here.services.database, here.services.storage) == []


async def test_a_migration_that_cannot_begin_says_so(empty_database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that never ends does not make another one wait forever."""
    monkeypatch.setattr("service.db.migrate.LOCK_SECONDS", 1)
    async with open_connection(empty_database_url) as other, other.transaction():
        await other.execute("SELECT pg_advisory_xact_lock(hashtextextended('geomill.migrations', 0))")
        with (
            pytest.raises(Exception, match="Another process has been migrating this database"),
            anyio.fail_after(PATIENCE_SECONDS),
        ):
            await migrate(empty_database_url)
    assert (await migrate(empty_database_url)).applied


async def test_a_table_that_is_held_does_not_stop_a_migration_for_ever(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to look for."""
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE first (n int);")
    await migrate(empty_database_url, tmp_path)
    (tmp_path / "0002_second.sql").write_text("ALTER TABLE first ADD m int;")
    monkeypatch.setattr("service.db.migrate.LOCK_SECONDS", 1)
    async with open_connection(empty_database_url) as other, other.transaction():
        await other.execute("LOCK TABLE first IN ACCESS SHARE MODE")
        with (
            pytest.raises(Exception, match=r"0002_second\.sql waited 1 seconds for a table"),
            anyio.fail_after(PATIENCE_SECONDS),
        ):
            await migrate(empty_database_url, tmp_path)
    assert (await migrate(empty_database_url, tmp_path)).applied == ["0002_second.sql"]
