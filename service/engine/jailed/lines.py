"""Checks that every line of a sequence was read. Runs in the sandbox.

The driver silently stops at the first line that it does not understand.
"""

import sys
from pathlib import Path

from service.engine.jailed.exits import Exit
from service.engine.jailed.gpkg import open_work_file, quoted, tables

SEPARATOR = b"\x1e"
BLANK = b" \t\r\n" + SEPARATOR


def main(sequence: str, work_file: str) -> None:
    """Exit with STOPPED_EARLY if `work_file` holds fewer features than `sequence`."""
    connection = open_work_file(work_file)
    counts = [f"SELECT count(*) FROM {quoted(name)}" for name in tables(connection)]  # noqa: S608 -- quoted
    features = sum(connection.execute(count).fetchone()[0] for count in counts)
    with Path(sequence).open("rb") as file:
        separated = file.read(1) == SEPARATOR
        file.seek(0)
        written = sum(line.count(SEPARATOR) if separated else bool(line.strip(BLANK)) for line in file)
    if features < written:
        sys.exit(Exit.STOPPED_EARLY)
