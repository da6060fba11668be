"""Writes a CSV of geometries as lines of WKT. Runs in the sandbox: `python -m …wktlines CSV LINES_FILE`."""

import sys
from pathlib import Path

NO_GEOMETRY = "GEOMETRYCOLLECTION EMPTY"
"""The line for a feature without geometry, so that lines and features stay aligned."""


def main(csv_file: str, lines_file: str) -> None:
    """Write the first column of `csv_file`, which is tab-delimited, to `lines_file`: one geometry per line."""
    with Path(csv_file).open(encoding="utf-8") as rows, Path(lines_file).open("w", encoding="utf-8") as lines:
        next(rows, None)
        for row in rows:
            geometry = row.strip().strip('"').strip()
            lines.write(f"{geometry or NO_GEOMETRY}\n")


if __name__ == "__main__":
    main(*sys.argv[1:3])
