"""Counts times whose zone the converter changes or drops. Runs in the sandbox: `python -m …zones COUNT_FILE FILE…`.

The converter has zones in quarters of an hour. Uses only the standard library.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

ODD_TIME = re.compile(
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,20})?)?[-+]\d\d:?(?!00|15|30|45)[0-5]\d(?!\d)"
)
"""Without its date, the hours of a shop look the same: 08:00-18:20."""
CHUNK = 1 << 20
LONGEST = 64
"""More bytes than such a time takes."""


def main(count_file: str, *files: str) -> None:
    """Write to `count_file` how many such times all `files` contain."""
    Path(count_file).write_text(json.dumps(count_odd_times(map(Path, files))), encoding="utf-8")


def count_odd_times(files: Iterable[Path]) -> int:
    """How many times in other zones the bytes of `files` contain."""
    return sum(map(_count, files))


def _count(path: Path) -> int:
    found, rest = 0, b""
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            text = rest + chunk
            seen = len(text) - LONGEST  # what begins later may go on in the next chunk
            found += sum(match.start() < seen for match in ODD_TIME.finditer(text))
            rest = text[max(seen, 0) :]
    return found + sum(1 for _ in ODD_TIME.finditer(rest))


if __name__ == "__main__":
    main(*sys.argv[1:])
