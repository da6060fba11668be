"""Texts of a work file that are not UTF-8."""

import sqlite3
from contextlib import closing

import pytest

from service.engine.jailed.encodings import mend_texts
from service.engine.jailed.gpkg import FID

COLUMNS = tuple(f"c{number}" for number in range(50))


@pytest.mark.parametrize(("text", "expected"), [(b"M\xc3\xbc", (0, 0)), (b"M\xfc", (50, 2))])
def test_rows_are_read_once_to_see_whether_all_of_their_texts_are_utf8(text: bytes, expected: tuple[int, int]) -> None:
    """Not once for each column, which would take most of the time of a conversion of a wide table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            f"CREATE TABLE t ({FID} INTEGER PRIMARY KEY, {', '.join(f'{name} TEXT' for name in COLUMNS)})"
        )
        for row in (b"a", text):
            values = ", ".join(["CAST(? AS TEXT)"] * len(COLUMNS))
            connection.execute(f"INSERT INTO t VALUES (NULL, {values})", [row] * len(COLUMNS))  # noqa: S608 -- ours
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        assert mend_texts(connection, "t") == expected
        connection.set_trace_callback(None)
        scans = [statement for statement in asked if statement.startswith("SELECT") and "mended" not in statement]
        assert len(scans) == 1
        assert set(connection.execute("SELECT c0, c49 FROM t")) == {("a", "a"), ("Mü", "Mü")}
