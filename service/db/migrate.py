"""Migration of a database to the schema of this version.

Each migration is applied once, in a transaction, and recorded with its checksum. There are no down migrations: an older
version serves with a newer schema, unless that lacks what it uses (see `migrations`).
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import anyio
import asyncpg
import msgspec

from service.db import queries
from service.db.connection import open_connection
from service.db.faults import LOST
from service.db.migrations import (
    Migration,
    MigrationError,
    SchemaAhead,
    SchemaBehind,
    next_of,
    read_migrations,
    unknown_to,
)

LOCK_SECONDS = 60
"""How long a migration waits for another migration, or for a session that uses a table which it changes."""
ATTEMPT_SECONDS = 0.5
"""How long one attempt waits for a table, while statements wait for those that it has changed.

PostgreSQL looks for a deadlock after a second, and would end a statement of a process that serves.
"""

_Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


class _TableHeld(MigrationError):
    """Another session uses a table that a migration changes; the migration was undone."""


class Schema(msgspec.Struct, frozen=True):
    """What a migration found and did, as names of files; `newer` are applied ones that this version does not know."""

    applied: list[str]
    newer: list[str]


async def migrate(dsn: str, directory: Path | None = None) -> Schema:
    """Apply the missing migrations to the database `dsn`, in order.

    Safe to run repeatedly and concurrently: other processes wait, then find nothing left to do. The lock belongs to the
    transaction of a migration, so that a pooler cannot leave it behind on a shared session.

    Args:
        dsn: the database.
        directory: the directory of the files; default: `migrations` in the project's SQL.

    Returns:
        What was applied by this call, and what had been applied by a newer version.

    Raises:
        MigrationError: a newer version took away what this one uses, an applied file was changed, a statement failed,
            or a lock could not be acquired in time.
        DatabaseUnavailable: the database is unreachable.
    """
    known = read_migrations(directory or queries.sql_directory() / "migrations")
    async with open_connection(dsn) as connection:
        applied = await _apply_missing(connection, known)
        newer = unknown_to(known, await _applied(connection))
    return Schema(applied, [migration.name for migration in newer])


async def _apply_missing(connection: _Connection, known: Sequence[Migration]) -> list[str]:
    names: list[str] = []
    try:
        while (name := await _apply_next_with_retries(connection, known)) is not None:
            names.append(name)
    except MigrationError as error:
        if names:
            raise MigrationError(
                f"{error} Before that, {', '.join(names)} had been applied, which stays so."
            ) from error
        raise
    return names


async def _apply_next_with_retries(connection: _Connection, known: Sequence[Migration]) -> str | None:
    """Apply the first missing migration, in as many attempts as it needs; return its name, None if none is missing."""
    since = time.monotonic()
    while True:
        try:
            return await _apply_next(connection, known)
        except _TableHeld:
            if time.monotonic() - since > LOCK_SECONDS:
                raise
        await anyio.sleep(ATTEMPT_SECONDS)  # in which others go on


async def _apply_next(connection: _Connection, known: Sequence[Migration]) -> str | None:
    """Apply the first missing migration in one transaction; return its name, or None if none is missing."""
    statements = queries.load("migrations")
    async with connection.transaction(isolation="read_committed"):  # to see what another process has applied
        await connection.execute(statements["limit_waiting"], f"{LOCK_SECONDS}s")
        try:
            await connection.execute(statements["lock"])
        except asyncpg.LockNotAvailableError:
            raise MigrationError(
                f"Another process has been migrating this database for {LOCK_SECONDS} seconds. Wait until it is done, "
                "or end its session (pg_stat_activity shows it), then try again."
            ) from None
        await connection.execute(statements["create_table"])
        applied = await _applied(connection)
        unknown_to(known, applied)
        if (missing := next_of(known, applied)) is None:
            return None
        await _apply(connection, missing)
    return missing.name


async def require_schema(dsn: str) -> None:
    """Check that the database `dsn` has the schema of this version, and change nothing.

    Raises:
        MigrationError: it has no schema, an older one (SchemaBehind), or a newer one (SchemaAhead, if this version
            can serve with it).
        DatabaseUnavailable: the database is unreachable.
    """
    known = read_migrations(queries.sql_directory() / "migrations")
    async with open_connection(dsn) as connection:
        if not await connection.fetchval(queries.load("migrations")["exists"]):
            raise SchemaBehind(
                "This database has no tables of Geomill. Start the service on it, or run `geomill migrate`, "
                "or name the right one in GEOMILL_DATABASE_URL."
            )
        applied = await _applied(connection)
    if newer := unknown_to(known, applied):
        raise SchemaAhead(
            f"The database is newer than this version of Geomill: it has {newer[-1].name}. This version can only serve "
            "with it; for other commands, run the version that made it, or a later one."
        )
    if (missing := next_of(known, applied)) is not None:
        raise SchemaBehind(
            f"This database lacks {missing.name}, which this version of Geomill needs. Run `geomill migrate` first."
        )


async def _applied(connection: _Connection) -> list[Migration]:
    rows = await connection.fetch(queries.load("migrations")["applied"])
    return [Migration(*row.values()) for row in rows]


async def _apply(connection: _Connection, migration: Migration) -> None:
    try:
        await connection.execute(queries.load("migrations")["limit_waiting"], f"{ATTEMPT_SECONDS}s")
        await connection.execute(migration.script)
        await connection.execute(
            queries.load("migrations")["record"], migration.number, migration.name, migration.checksum
        )
    except (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError) as error:
        raise _TableHeld(
            f"{migration.name} waited {LOCK_SECONDS} seconds for a table that another session holds, and was undone. "
            "End that session (pg_stat_activity shows it), then try again."
        ) from error
    except LOST:
        raise
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{migration.name} failed and was undone: {error}") from error
