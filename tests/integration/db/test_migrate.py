"""Migrations against a real server."""

from pathlib import Path
from typing import Any

import anyio
import asyncpg
import pytest

from service.db.migrate import migrate
from service.db.migrations import MigrationError, read_migrations
from tests.database import TestServer, database_name


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write(tmp_path, "0001_first.sql", "CREATE TABLE first (n int); INSERT INTO first VALUES (1);")
    write(tmp_path, "0002_second.sql", "-- ünï\nCREATE TABLE second (n int);")
    return tmp_path


def write(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(script, encoding="utf-8")


async def tables(dsn: str) -> set[str]:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(dsn)
    rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    await connection.close()
    return {row["tablename"] for row in rows}


async def test_applies_what_is_missing_in_order(empty_database_url: str, directory: Path) -> None:
    """A fresh database gets every migration, the next call applies none, and later only a new file is applied."""
    assert (await migrate(empty_database_url, directory)).applied == ["0001_first.sql", "0002_second.sql"]
    assert (await migrate(empty_database_url, directory)).applied == []
    write(directory, "0003_third.sql", "ALTER TABLE first ADD m int;")
    assert (await migrate(empty_database_url, directory)).applied == ["0003_third.sql"]
    assert await tables(empty_database_url) == {"first", "second", "migration"}


@pytest.mark.parametrize("isolation", ["read committed", "serializable"])
async def test_many_at_once_apply_each_once(
    postgres: TestServer, empty_database_url: str, directory: Path, isolation: str
) -> None:
    """One of several processes applies each migration, and they may finish in any order."""
    name = database_name(empty_database_url)
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
    applied: list[str] = []

    async def run() -> None:
        applied.extend((await migrate(empty_database_url, directory)).applied)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(run)
    assert sorted(applied) == ["0001_first.sql", "0002_second.sql"]


async def test_failed_migration_leaves_nothing(empty_database_url: str, directory: Path) -> None:
    """A failed migration is rolled back as a whole, earlier ones remain, and its corrected version is applied."""
    write(directory, "0003_third.sql", "CREATE TABLE third (n int); SELECT 1 / 0;")
    with pytest.raises(MigrationError, match=r"0003_third\.sql failed and was undone: division by zero"):
        await migrate(empty_database_url, directory)
    assert await tables(empty_database_url) == {"first", "second", "migration"}
    write(directory, "0003_third.sql", "CREATE TABLE third (n int);")
    assert (await migrate(empty_database_url, directory)).applied == ["0003_third.sql"]


async def test_changed_migration_is_refused(empty_database_url: str, directory: Path) -> None:
    """A file that changed after it was applied stops the migration, with its name."""
    await migrate(empty_database_url, directory)
    write(directory, "0001_first.sql", "CREATE TABLE first (n bigint);")
    write(directory, "0003_third.sql", "CREATE TABLE third (n int);")
    with pytest.raises(MigrationError, match=r"0001_first\.sql is not what was applied"):
        await migrate(empty_database_url, directory)
    assert "third" not in await tables(empty_database_url)


async def test_renamed_migration_is_refused(empty_database_url: str, directory: Path) -> None:
    """A file with another's number is not mistaken for it."""
    await migrate(empty_database_url, directory)
    (directory / "0002_second.sql").rename(directory / "0002_other.sql")
    with pytest.raises(MigrationError, match=r"0002_other\.sql is not what was applied .* as 0002_second\.sql"):
        await migrate(empty_database_url, directory)


async def test_an_older_program_leaves_a_newer_database_as_it_is(empty_database_url: str, directory: Path) -> None:
    """It applies nothing, and learns what it does not know."""
    await migrate(empty_database_url, directory)
    (directory / "0002_second.sql").unlink()
    schema = await migrate(empty_database_url, directory)
    assert (schema.applied, schema.newer) == ([], ["0002_second.sql"])
    assert await tables(empty_database_url) == {"first", "second", "migration"}


async def test_a_database_that_lacks_what_an_older_program_uses_is_refused(
    empty_database_url: str, directory: Path
) -> None:
    """A migration that took something away names the last one whose programs do not need it."""
    write(directory, "0003_third.since_0002.sql", "DROP TABLE first;")
    await migrate(empty_database_url, directory)
    (directory / "0003_third.since_0002.sql").unlink()
    assert (await migrate(empty_database_url, directory)).newer == ["0003_third.since_0002.sql"]
    (directory / "0002_second.sql").unlink()
    with pytest.raises(MigrationError, match=r"0003_third\.since_0002\.sql took away what this version uses"):
        await migrate(empty_database_url, directory)


async def test_a_failure_tells_what_was_applied_before(empty_database_url: str, directory: Path) -> None:
    """Migrations that came before the failed one stay."""
    write(directory, "0003_third.sql", "SELECT 1 / 0;")
    with pytest.raises(MigrationError, match=r"Before that, 0001_first\.sql, 0002_second\.sql had been applied"):
        await migrate(empty_database_url, directory)


@pytest.mark.parametrize(
    "name",
    [
        "0003_gap.sql",
        "0001_again.sql",
        "02_short.sql",
        "0002.sql",
        "0002_Upper.sql",
        "0002_itself.since_0002.sql",
        "0002_short.since_1.sql",
        "0002_other.until_0001.sql",
    ],
)
def test_numbers_have_no_gap_and_no_double(tmp_path: Path, name: str) -> None:
    """Files out of sequence are named before anything is applied."""
    write(tmp_path, "0001_first.sql", "SELECT 1;")
    write(tmp_path, name, "SELECT 1;")
    with pytest.raises(MigrationError, match="expected a name of the form"):
        read_migrations(tmp_path)


async def test_project_migrations_apply(empty_database_url: str) -> None:
    """The project's migrations apply to an empty database, and a copy of the template needs none."""
    assert (await migrate(empty_database_url)).applied
    assert (await migrate(empty_database_url)).applied == []


async def test_test_database_is_migrated(database_url: str) -> None:
    """A test's database already has the project's schema."""
    assert (await migrate(database_url)).applied == []
