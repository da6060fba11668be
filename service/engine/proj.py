"""Keeps a private copy of PROJ's database without its triggers, and with more indexes.

Every process that looks up a coordinate system parses the schema of proj.db. The triggers are more than half of it and
only guard writes. Without them, a small conversion takes a third less time, with the same results.

PROJ looks up a datum or system by name in every transformation to another datum and in every search for the code of a
definition, and asks of every system whether any operation leads from or to it. Without an index, each look-up reads
whole tables, such as 16,000 names, which takes a millisecond.
"""

import os
import shutil
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path

import structlog

DATABASE = "proj.db"
_NAMES = {"alias_name": "alt_name", "geodetic_crs": "name", "geodetic_datum": "name", "projected_crs": "name"}
"""The column of the names, which PROJ looks up as they are written or in any case.

PROJ sorts what it finds, or takes it in the order of the table, which entries of one name have in an index as well.
"""
_TARGETS = ("concatenated_operation", "grid_transformation", "helmert_transformation_table", "other_transformation")
_INDEXES = (
    *((table, f"{name} COLLATE {case}") for table, name in _NAMES.items() for case in ("BINARY", "NOCASE")),
    *((table, "target_crs_auth_name, target_crs_code") for table in _TARGETS),
)
log = structlog.get_logger(__name__)


def private_database(original: Path, directory: Path) -> Path:
    """The directory with such a copy of `original` (a proj.db), made once below `directory`.

    Returns the directory of `original` if the copy cannot be made or does not hold the same rows.
    """
    found = original.stat()
    home = directory / f"{found.st_size:x}-{found.st_mtime_ns:x}-indexed"
    try:
        if not (home / DATABASE).is_file():
            _make(original, home)
    except (OSError, sqlite3.Error, ValueError) as error:
        log.warning("proj.original_used", reason=type(error).__name__)
        return original.parent
    return home


def _make(original: Path, home: Path) -> None:
    """Build the copy under another name and then rename it, so that no process ever sees an incomplete one."""
    home.mkdir(parents=True, exist_ok=True)
    for directory in (home.parent, home):
        directory.chmod(0o755)  # runs of other users may read it, whatever the umask of the host
    draft = home / f".{DATABASE}.{os.getpid()}"
    try:
        shutil.copyfile(original, draft)
        _rearrange(draft)
        if _is_damaged(draft) or _fingerprint(original) != _fingerprint(draft):
            raise ValueError("the copy is damaged, or differs from the original")
        draft.chmod(0o644)
        draft.replace(home / DATABASE)
    finally:
        draft.unlink(missing_ok=True)


def _rearrange(database: Path) -> None:
    """Drop triggers and add indexes, without a journal: an interrupted process leaves a draft that none uses."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        rows = connection.execute("SELECT name, type FROM sqlite_master").fetchall()
        dropped = [f'DROP TRIGGER "{name}";' for name, kind in rows if kind == "trigger"]
        added = [
            f"CREATE INDEX geomill_{number} ON {table} ({columns});"
            for number, (table, columns) in enumerate(_INDEXES)
            if (table, "table") in rows
        ]
        connection.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN; {''.join(dropped + added)} COMMIT;"
        )


def _is_damaged(database: Path) -> bool:
    """Whether something of a database cannot be read; what is damaged in an original is so in its copy."""
    with _opened(database) as connection:
        return bool(connection.execute("PRAGMA quick_check").fetchone() != ("ok",))


def _fingerprint(database: Path) -> list[tuple[str, str, int]]:
    """Every table and view with its definition and number of rows."""
    with _opened(database) as connection:
        entries = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' "
            "ORDER BY name"
        ).fetchall()
        return [
            (name, sql, connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0])  # noqa: S608 -- of PROJ
            for kind, name, sql in entries
            if kind == "table"
        ]


def _opened(database: Path) -> AbstractContextManager[sqlite3.Connection]:
    return closing(sqlite3.connect(f"{database.as_uri()}?mode=ro&immutable=1", uri=True))
