"""The formats in the README, made from the format table: `python -m service.formats.summary README.md` updates them."""

import sys
from pathlib import Path

from service.formats.documentation import renew, uploaded_as
from service.formats.table import FORMATS


def summary() -> str:
    """One sentence, and a table with a row per format: which files are read and which are written."""
    read = [row for row in FORMATS if row.reading is not None]
    written = [row for row in FORMATS if row.writing is not None]
    both = [row for row in written if row in read]
    lines = [
        f"Geomill reads {len(read)} formats and writes {len(written)}; {len(both)} are the same.",
        "Every input converts to every output except its own format.\n",
        "| format | read from | written as | `outputFormat` |",
        "|---|---|---|---|",
        *(
            f"| {row.title} | {uploaded_as(row) if row.reading else ''} "
            f"| {row.writing.extension if row.writing else ''} | {f'`{row.name}`' if row.writing else ''} |"
            for row in FORMATS
        ),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    renew(Path(sys.argv[1]), summary())
