"""Changing databases of SQLite before they are converted."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the database at `path`; what it does is one transaction, which waits for no disk.

    By itself, each statement that defines something would be one, and wait several times.
    """
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        yield connection
