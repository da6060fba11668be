"""Migration of a database to the schema of this version.

A migration is a file `NNNN_what_it_does.sql`; numbers run from 0001 without a gap. Each is applied once, in a
transaction, and recorded with its checksum. There are no down migrations: an older version refuses a newer database.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import asyncpg
import msgspec

from service.db import queries
from service.db.connection import open_connection
from service.db.faults import LOST

LOCK_SECONDS = 60
"""How long a migration waits for another migration, or for a session that uses a table which it changes."""

_Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
_FILE_NAME = re.compile(r"(?P<number>\d{4})_[a-z0-9_]+\.sql")


class MigrationError(Exception):
    """The database cannot be migrated to the schema of this version; the message says why and what to do."""


class SchemaBehind(MigrationError):
    """The database has no schema yet, or an older one: a migration brings it to this version."""


class Migration(msgspec.Struct, frozen=True):
    """One numbered file."""

    number: int
    name: str
    checksum: bytes
    script: str = ""


async def migrate(dsn: str, directory: Path | None = None) -> list[str]:
    """Apply the missing migrations to the database `dsn`, in order.

    Safe to run repeatedly and concurrently: other processes wait, then find nothing left to do. The lock belongs to the
    transaction of a migration, so that a pooler cannot leave it behind on a shared session.

    Args:
        dsn: the database.
        directory: the directory of the files; default: `migrations` in the project's SQL.

    Returns:
        The names of the files that were applied by this call.

    Raises:
        MigrationError: the database is newer than the files, an applied file was changed, a statement failed, or
            a lock could not be acquired in time.
        DatabaseUnavailable: the database is unreachable.
    """
    known = read_migrations(directory or queries.sql_directory() / "migrations")
    async with open_connection(dsn) as connection:
        return await _apply_missing(connection, known)


def read_migrations(directory: Path) -> list[Migration]:
    """Read the migrations in `directory`, in order.

    Raises:
        MigrationError: the name or number of a file is invalid.
    """
    files = sorted(directory.glob("*.sql"))
    return [_read(path, number) for number, path in enumerate(files, start=1)]


def _read(path: Path, number: int) -> Migration:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None or int(match["number"]) != number:
        raise MigrationError(f"{path.name}: expected a name of the form {number:04}_what_it_does.sql.")
    content = path.read_bytes()
    return Migration(number, path.name, hashlib.sha256(content).digest(), content.decode())


async def _apply_missing(connection: _Connection, known: Sequence[Migration]) -> list[str]:
    names: list[str] = []
    while (name := await _apply_next(connection, known)) is not None:
        names.append(name)
    return names


async def _apply_next(connection: _Connection, known: Sequence[Migration]) -> str | None:
    """Apply the first missing migration in one transaction; return its name, or None if none is missing."""
    statements = queries.load("migrations")
    async with connection.transaction():
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
        _check(applied, known)
        if len(applied) == len(known):
            return None
        await _apply(connection, known[len(applied)])
    return known[len(applied)].name


async def require_schema(dsn: str) -> None:
    """Check that the database `dsn` has the schema of this version, and change nothing.

    Raises:
        MigrationError: it has no schema, an older one, or a newer one.
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
    _check(applied, known)
    if len(applied) < len(known):
        raise SchemaBehind(
            f"This database lacks {known[len(applied)].name}, which this version of Geomill needs. "
            "Run `geomill migrate` first."
        )


async def _applied(connection: _Connection) -> list[Migration]:
    rows = await connection.fetch(queries.load("migrations")["applied"])
    return [Migration(*row.values()) for row in rows]


def _check(applied: Sequence[Migration], known: Sequence[Migration]) -> None:
    """Refuse a database whose applied migrations are not the first ones of `known`."""
    for past, file in zip(applied, known, strict=False):
        if (past.name, past.checksum) != (file.name, file.checksum):
            raise MigrationError(
                f"{file.name} is not what was applied to this database as {past.name}. "
                "An applied migration must never change; put the change into a new one."
            )
    if len(applied) > len(known):
        raise MigrationError(
            f"The database is newer than this version of Geomill: it has {applied[-1].name}. "
            "Run the version that made it, or a later one."
        )


async def _apply(connection: _Connection, migration: Migration) -> None:
    try:
        await connection.execute(migration.script)
        await connection.execute(
            queries.load("migrations")["record"], migration.number, migration.name, migration.checksum
        )
    except LOST:
        raise
    except asyncpg.LockNotAvailableError as error:
        raise MigrationError(
            f"{migration.name} waited {LOCK_SECONDS} seconds for a table that another session holds, and was undone. "
            "End that session (pg_stat_activity shows it), then try again."
        ) from error
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{migration.name} failed and was undone: {error}") from error
