"""A database of an earlier version, with work in progress, continues under this version."""

from pathlib import Path

import anyio
import pytest

from service.accounts.administration import Administration, Terms
from service.clock import utc_now
from service.db import migrate as migrate_module
from service.db.connection import open_connection
from service.db.migrate import ATTEMPT_SECONDS, migrate
from service.db.migrations import MigrationError, read_migrations
from service.db.pool import Database, open_pool
from service.db.queries import sql_directory
from service.ids import AccountId
from service.metering.audit import audit_books
from service.metering.ledger import Ledger, Release, publish_plans
from service.metering.pricing import Pricing
from tests.support.jobs import application, settlement

PRESENT = sql_directory() / "migrations"


async def pretend_that_it_has(dsn: str, last: int) -> None:
    """Make a database one that had the separate migrations up to a number, for which the first file stands now."""
    first = read_migrations(PRESENT)[0]
    assert first.replaced is not None
    rows = [(number, f"{number:04}_something.sql", bytes(32)) for number in range(1, first.number)]
    rows.append((first.number, *first.replaced))
    async with open_connection(dsn) as connection:
        # Later files follow only a complete first one.
        await connection.execute("DELETE FROM migration WHERE number = $1 OR $2 < $1", first.number, last)
        await connection.executemany("INSERT INTO migration (number, name, checksum) VALUES ($1, $2, $3)", rows[:last])


async def account_on(database: Database) -> AccountId:
    """Publish the plans and create an account on one of them."""
    await publish_plans(database)
    terms = Terms(plan="business", plan_owner="organization")
    _, key = await Administration(database, utc_now).create_account("a", terms)
    return key.account_id


async def test_a_database_that_has_what_the_first_file_stands_for_goes_on(empty_database_url: str) -> None:
    """Nothing is applied to it, and its open jobs are settled."""
    await migrate(empty_database_url)
    first = read_migrations(PRESENT)[0]
    async with open_pool(empty_database_url) as database:
        account_id = await account_on(database)
        ledger, file = Ledger(database, Pricing()), application(account_id, 1)
        await ledger.admit(file)
        await pretend_that_it_has(empty_database_url, first.number)
        assert await migrate(empty_database_url) == migrate_module.Schema([], [])
        await migrate_module.require_schema(empty_database_url)
        assert await ledger.settle(settlement(file.job_id)) is not None


async def test_a_database_that_lacks_a_part_of_what_the_first_file_stands_for_is_refused(
    empty_database_url: str,
) -> None:
    """The message names what it has, and which version can migrate it; nothing is changed."""
    await migrate(empty_database_url)
    first = read_migrations(PRESENT)[0]
    await pretend_that_it_has(empty_database_url, first.number - 1)
    assert first.replaced is not None
    expected = (
        rf"has {first.number - 1:04}_something\.sql, which .* Migrate it with a version that has {first.replaced[0]}"
    )
    for use in (migrate, migrate_module.require_schema):
        with pytest.raises(MigrationError, match=expected):
            await use(empty_database_url)


async def convert(ledger: Ledger, account_id: AccountId, number: int) -> bool:
    """Admit a file and complete it, or release every third; return whether it was completed."""
    file = application(account_id, 1)
    await ledger.admit(file)
    if number % 3:
        return await ledger.settle(settlement(file.job_id)) is not None
    assert await ledger.release(Release(job_id=file.job_id, attempt=1, error_message="no", details={})) is not None
    return False


async def test_this_version_serves_while_a_later_one_migrates_the_database(
    empty_database_url: str, tmp_path: Path
) -> None:
    """All its statements work before, during and after, and the books agree with what it charged."""
    await migrate(empty_database_url)
    present = read_migrations(PRESENT)
    for migration in present:
        (tmp_path / migration.name).write_text(migration.script, "utf-8")
    later = f"{present[-1].number + 1:04}_later.sql"
    (tmp_path / later).write_text(
        "ALTER TABLE job ADD COLUMN later int NOT NULL DEFAULT 0; ALTER TABLE ledger ADD COLUMN later text;"
        "CREATE INDEX job_later ON job (later); ALTER TABLE usage ADD COLUMN later text;",
        "utf-8",
    )
    done: list[bool] = []
    begun, migrated = anyio.Event(), anyio.Event()
    async with open_pool(empty_database_url) as database:
        account_id, ledger = await account_on(database), Ledger(database, Pricing())

        async def convert_on() -> None:
            while not migrated.is_set() or len(done) < after + 20:
                done.append(await convert(ledger, account_id, len(done)))
                if len(done) == 20:
                    begun.set()

        after = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(convert_on)
            await begun.wait()
            assert (await migrate(empty_database_url, tmp_path)).applied == [later]
            after = len(done)
            migrated.set()
        assert (await ledger.balance(account_id)).used_conversions == sum(done)
        assert await audit_books(database) == []


@pytest.mark.parametrize("attempt_seconds", [ATTEMPT_SECONDS, 5])
async def test_a_migration_makes_way_for_statements_that_it_would_wait_for(
    empty_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt_seconds: float
) -> None:
    """Whoever uses its second table may use its first one next: neither fails, also if there is a deadlock."""
    monkeypatch.setattr(migrate_module, "ATTEMPT_SECONDS", attempt_seconds)
    (tmp_path / "0001_first.sql").write_text("CREATE TABLE first (n int); CREATE TABLE second (n int);")
    await migrate(empty_database_url, tmp_path)
    (tmp_path / "0002_second.sql").write_text("ALTER TABLE first ADD m int; ALTER TABLE second ADD m int;")
    waits = "SELECT FROM pg_locks WHERE relation = 'second'::regclass AND NOT granted"
    async with (
        open_pool(empty_database_url) as database,
        anyio.create_task_group() as tasks,
        database.transaction() as serving,
        database.connection() as other,
    ):
        if attempt_seconds > ATTEMPT_SECONDS:
            await serving.execute("SET LOCAL deadlock_timeout = '1h'")  # so that PostgreSQL ends the migration
        await serving.execute("INSERT INTO second VALUES (1)")
        tasks.start_soon(migrate, empty_database_url, tmp_path)
        while not await other.fetch(waits):  # noqa: ASYNC110 -- in its own time
            await anyio.sleep(0.01)
        await serving.execute("INSERT INTO first VALUES (1)")
    async with open_pool(empty_database_url) as database, database.connection() as connection:
        assert (await migrate(empty_database_url, tmp_path)).applied == []
        assert (
            await connection.fetchval("SELECT count(*) FROM first f, second s WHERE f.m IS NULL AND s.m IS NULL") == 1
        )
