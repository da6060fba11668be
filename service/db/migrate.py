"""Bringing a database to the schema that this version of the code expects.

A migration is a file `NNNN_what_it_does.sql`; numbers run from 0001 without a gap. Each is applied once, in a
transaction, and remembered with its checksum. There is no way back: an older program refuses a newer database.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import asyncpg
import msgspec

from service.db import queries
from service.db.connection import LOST, open_connection

_FILE_NAME = re.compile(r"(?P<number>\d{4})_[a-z0-9_]+\.sql")


class MigrationError(Exception):
    """The database cannot be brought to the schema of this version; the message says why and what to do."""


class Migration(msgspec.Struct, frozen=True):
    """One numbered file."""

    number: int
    name: str
    checksum: bytes
    script: str = ""


async def migrate(dsn: str, directory: Path | None = None) -> list[str]:
    """Apply the migrations that the database `dsn` has not had, in order.

    Safe to run twice and from several processes at once: the others wait, then find nothing left to do.

    Args:
        dsn: the database.
        directory: where the files are; by default `migrations` in the project's SQL.

    Returns:
        The names of the files that were applied by this call.

    Raises:
        MigrationError: the database is newer than the files, an applied file was changed, or a statement failed.
        DatabaseUnavailable: the database cannot be reached.
    """
    known = read_migrations(directory or queries.sql_directory() / "migrations")
    async with open_connection(dsn) as connection:
        return await _apply_missing(connection, known)


def read_migrations(directory: Path) -> list[Migration]:
    """Read the migrations in `directory`, in order.

    Raises:
        MigrationError: a file's name or number is out of line.
    """
    files = sorted(directory.glob("*.sql"))
    return [_read(path, number) for number, path in enumerate(files, start=1)]


def _read(path: Path, number: int) -> Migration:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None or int(match["number"]) != number:
        raise MigrationError(f"{path.name}: expected a name of the form {number:04}_what_it_does.sql.")
    content = path.read_bytes()
    return Migration(number, path.name, hashlib.sha256(content).digest(), content.decode())


async def _apply_missing(connection: "asyncpg.Connection[asyncpg.Record]", known: Sequence[Migration]) -> list[str]:
    statements = queries.load("migrations")
    await connection.execute(statements["lock"])
    await connection.execute(statements["create_table"])
    applied = [Migration(*row.values()) for row in await connection.fetch(statements["applied"])]
    _check(applied, known)
    missing = known[len(applied) :]
    for migration in missing:
        await _apply(connection, migration)
    return [migration.name for migration in missing]


def _check(applied: Sequence[Migration], known: Sequence[Migration]) -> None:
    """Refuse a database whose past is not the beginning of `known`."""
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


async def _apply(connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration) -> None:
    try:
        async with connection.transaction():
            await connection.execute(migration.script)
            await connection.execute(
                queries.load("migrations")["record"], migration.number, migration.name, migration.checksum
            )
    except LOST:
        raise
    except asyncpg.PostgresError as error:
        raise MigrationError(f"{migration.name} failed and was undone: {error}") from error
