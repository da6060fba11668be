"""The migrations: numbered files, and what a version may do with a database that has others.

A migration is a file `NNNN_what_it_does.sql`; numbers have no gap. The first file may stand for all migrations up to
its number: its first line, `-- replaces: NAME CHECKSUM`, names the last of them, and a database that has that one needs
nothing of it. Most migrations only add to the schema, so that the version before, which does not know them, can go on
and start again. One that takes away what an earlier version used says so in its name,
`NNNN_what_it_does.since_MMMM.sql`: nothing has used it since the version whose last migration is MMMM. The database
records the names, so that a version can read there whether it may serve.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

_REPLACES = re.compile(r"-- replaces: (\S+) ([0-9a-f]{64})\n")
_FILE_NAME = re.compile(r"(?P<number>\d{4})_[a-z0-9_]+(?:\.since_(?P<since>\d{4}))?\.sql")


class MigrationError(Exception):
    """The database cannot have the schema of this version; the message says why and what to do."""


class SchemaBehind(MigrationError):
    """The database has no schema yet, or an older one: a migration brings it to this version."""


class SchemaAhead(MigrationError):
    """The database has a newer schema, on which this version can only serve."""


class Migration(msgspec.Struct, frozen=True):
    """One numbered file; `replaced` is the name and checksum of an earlier one of its number that it stands for."""

    number: int
    name: str
    checksum: bytes
    script: str = ""
    replaced: tuple[str, bytes] | None = None


def read_migrations(directory: Path) -> list[Migration]:
    """Read the migrations in `directory`, in order.

    Raises:
        MigrationError: the name or number of a file is invalid.
    """
    files = sorted(directory.glob("*.sql"))
    first = _FILE_NAME.fullmatch(files[0].name)
    return [_read(path, number) for number, path in enumerate(files, start=int(first["number"]) if first else 1)]


def _read(path: Path, number: int) -> Migration:
    match = _FILE_NAME.fullmatch(path.name)
    if match is None or int(match["number"]) != number or _since(path.name) >= number:
        raise MigrationError(
            f"{path.name}: expected a name of the form {number:04}_what_it_does.sql, or, if it takes away what nothing "
            f"has used since an earlier migration, {number:04}_what_it_does.since_NNNN.sql."
        )
    content = path.read_bytes()
    script = content.decode()
    replaces = _REPLACES.match(script)
    replaced = (replaces[1], bytes.fromhex(replaces[2])) if replaces else None
    return Migration(number, path.name, hashlib.sha256(content).digest(), script, replaced)


def next_of(known: Sequence[Migration], applied: Sequence[Migration]) -> Migration | None:
    """Return the first of the `known` migrations that a database with those `applied` lacks; None if it has all."""
    return next((one for one in known if not applied or one.number > applied[-1].number), None)


def unknown_to(known: Sequence[Migration], applied: Sequence[Migration]) -> list[Migration]:
    """Return those `applied` to a database after all that this version has, with which it can serve nevertheless.

    Raises:
        MigrationError: the applied migrations are others than `known`, too few for the first one, or a later one took
            away what this version uses.
    """
    first, last = known[0], known[-1]
    if applied and first.replaced and applied[-1].number < first.number:
        raise MigrationError(
            f"This database has {applied[-1].name}, which this version of Geomill can no longer migrate. "
            f"Migrate it with a version that has {first.replaced[0]} first."
        )
    comparable = [migration for migration in applied if migration.number >= first.number]
    for past, file in zip(comparable, known, strict=False):
        if (past.name, past.checksum) not in {(file.name, file.checksum), file.replaced}:
            raise MigrationError(
                f"{file.name} is not what was applied to this database as {past.name}. "
                "An applied migration must never change; put the change into a new one."
            )
    unknown = comparable[len(known) :]
    for migration in unknown:
        if _since(migration.name) > last.number:
            raise MigrationError(
                f"The database is newer than this version of Geomill, and {migration.name} took away what this version "
                "uses. Run the version that made it, or a later one."
            )
    return unknown


def _since(name: str) -> int:
    """Return the last migration that a version must have to serve after this one; a form not known here admits none."""
    match = _FILE_NAME.fullmatch(name)
    return int(match["since"] or 0) if match else 10_000
