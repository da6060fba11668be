"""Has columns of a work file without rows take repeated values. Runs in the sandbox.

FlatGeobuf declares that the values of a column differ, without making sure of it, and times differ by less than the
milliseconds that are read.
"""

import re
from contextlib import closing

from service.engine.jailed.gpkg import open_work_file, quoted, tables

UNIQUE = re.compile(r'("[^"]*")| UNIQUE(?=[,)])')
"""The rule that values differ; a quoted name is passed over."""


def main(work_file: str) -> None:
    """Recreate the tables of `work_file` without the rule that values differ."""
    with closing(open_work_file(work_file)) as connection:
        for table in list(tables(connection)):
            (definition,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
            connection.execute(f"DROP TABLE {quoted(table)}")
            connection.execute(UNIQUE.sub(lambda found: found[1] or "", definition))
