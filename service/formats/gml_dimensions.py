"""Renames the attribute with which old GML says how many numbers a position has: the driver knows only the new name."""

import re
from pathlib import Path

from service.formats.left_out import has_match, pieces_to, written

OLD_NAME = b"dimension"
THREE_BY_OLD_NAME = re.compile(
    rb"(<(?:\w{1,20}+:)?+pos(?:List)?\s(?![^<>]*srsDimension)[^<>]*?\b)" + OLD_NAME + rb"(?=\s*=\s*[\"']3[\"'])"
)
"""Positions of three numbers, which the driver would read as more positions of two."""
LONGEST_TAG = 16 << 10


def with_known_dimensions(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """The file to read in place of the GML at `path`, and no warning. Blocking.

    It is `path` if no positions have three numbers by the old name; otherwise `target`, a new file whose directory is
    created if needed. `text` is where to look for them, if not in the file itself.
    """
    if not has_match(text or path, THREE_BY_OLD_NAME, OLD_NAME):
        return path, ""
    pieces = pieces_to(path, b">", LONGEST_TAG)
    return written(target, (THREE_BY_OLD_NAME.sub(rb"\1srsDimension", piece) for piece in pieces)), ""
