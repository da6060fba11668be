"""Mends texts that are in another encoding than their file declares. Runs in the sandbox."""

import sqlite3
from collections import deque

from service.engine.jailed.gpkg import FID, quoted, text_columns

NO_UNICODE = "cp1252"
"""The encoding that all text is taken for that is not UTF-8, nor UTF-8 that was cut."""
ENDS_EARLY = "unexpected end of data"
"""What Python says of a text that is UTF-8 but for an incomplete character at its end."""


def mend_texts(connection: sqlite3.Connection, table: str) -> tuple[int, int]:
    """Mend the texts of `table` that are not UTF-8; return how many are, and the first row of them."""
    names = text_columns(connection, table)
    if _are_utf8(connection, table, names):
        return 0, 0
    connection.create_function("mended", 1, mended, deterministic=True)
    count, first = 0, 0
    for name in names:
        query = (
            f"SELECT mended(CAST({name} AS BLOB)) AS text, {FID} FROM {quoted(table)} "  # noqa: S608 -- the names are quoted
            f"WHERE typeof({name}) = 'text' AND text IS NOT NULL ORDER BY {FID}"
        )
        found = connection.execute(query).fetchall()
        connection.executemany(f"UPDATE {quoted(table)} SET {name} = ? WHERE {FID} = ?", found)  # noqa: S608 -- the names are quoted
        rows = [row for _, row in found[:1]]
        count, first = count + len(found), min([*rows, *([first] if first else [])], default=0)
    return count, first


def _are_utf8(connection: sqlite3.Connection, table: str, names: list[str]) -> bool:
    """Whether all texts can be read, which takes a fraction of a second for a million."""
    if not names:
        return True
    query = f"SELECT {', '.join(names)} FROM {quoted(table)}"  # noqa: S608 -- the names are quoted
    try:
        deque(connection.execute(query), maxlen=0)
    except sqlite3.OperationalError:
        return False
    return True


def mended(text: bytes) -> str | None:
    """The text, None if it is UTF-8.

    Some programs cut long texts at the width of their column; U+FFFD replaces what remains of the last character.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        is_cut = error.reason == ENDS_EARLY and not text[: error.start].isascii()
        return text.decode(errors="replace") if is_cut else text.decode(NO_UNICODE, "replace")
    return None
