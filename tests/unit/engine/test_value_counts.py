"""What is counted of the values of a table's columns, and at what cost."""

import sqlite3
from contextlib import closing

from service.engine.jailed.gpkg import FID
from service.engine.jailed.values import value_counts

COLUMNS = 1_900


def test_columns_without_values_are_only_asked_whether_they_have_any() -> None:
    """Hundreds of thousands of sums over columns without values would take minutes of a file of a few megabytes."""
    with closing(sqlite3.connect(":memory:")) as connection:
        columns = ", ".join(f"c{number} TEXT" for number in range(COLUMNS))
        connection.execute(f"CREATE TABLE t ({FID} INTEGER PRIMARY KEY, {columns})")
        connection.execute("INSERT INTO t (c7) VALUES (' a '), ('')")
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        counts = value_counts(connection, "t", {f"c{number}": "text" for number in range(COLUMNS)})
    assert sum(query.count("(c") + query.count('("c') for query in asked) < 2 * COLUMNS
    assert (counts["c7"]["filled"], counts["c7"]["leading_blanks"], counts["c7"]["empty"]) == (2, 1, 1)
    assert counts["c8"].keys() == counts["c7"].keys()
    assert not any(counts["c8"].values())


def test_no_query_compares_thousands_of_sums() -> None:
    """SQLite compares each sum of a query with all others: the time for a thousand grows with their square."""
    with closing(sqlite3.connect(":memory:")) as connection:
        columns = ", ".join(f"c{number} TEXT" for number in range(COLUMNS))
        connection.execute(f"CREATE TABLE t ({FID} INTEGER PRIMARY KEY, {columns})")
        connection.execute(f"INSERT INTO t VALUES (1, {', '.join(['1'] * COLUMNS)})")  # noqa: S608 -- numbers
        asked: list[str] = []
        connection.set_trace_callback(asked.append)
        value_counts(connection, "t", {f"c{number}": "text" for number in range(COLUMNS)})
    assert max(query.count("sum(") for query in asked) <= 200
