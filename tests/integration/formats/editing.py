"""Changing databases of SQLite and members of ZIP archives before they are converted."""

import re
import sqlite3
import zipfile
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


def replace_in(archive: Path, copy: Path, pattern: bytes, new: bytes) -> None:
    """Copy a ZIP with what matches `pattern` replaced in all members."""
    with zipfile.ZipFile(archive) as packed, zipfile.ZipFile(copy, "w") as changed:
        for name in packed.namelist():
            changed.writestr(name, re.sub(pattern, lambda _: new, packed.read(name)))
