"""Takes empty elevations out of GPX: its driver takes those of points in lines for 0, and so for elevations."""

import re
from pathlib import Path

from service.formats.left_out import has_match, pieces_to, written

_OPEN, _END = b"<ele", b">"
EMPTY = re.compile(rb"<ele\s*+(?:/>|>\s*+</ele\s*+>)")
_LONGEST = 2 << 20


def without_empty_elevations(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """The file to read in place of the GPX at `path`, and no warning. Blocking.

    It is `path` if it has no such elevations; otherwise `target`, a new file whose directory is created if needed.
    `text` is where to look for them, if not in the file itself.
    """
    if not has_match(text or path, EMPTY, _OPEN):
        return path, ""
    return written(target, (EMPTY.sub(b"", piece) for piece in pieces_to(path, _END, _LONGEST))), ""
