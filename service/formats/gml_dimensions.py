"""Renames the attribute with which old GML says how many numbers a position has: the driver knows only the new name."""

import re
from collections.abc import Iterator
from pathlib import Path

from service.formats.left_out import chunks, has_match

OLD_NAME = b"dimension"
THREE_BY_OLD_NAME = re.compile(
    rb"(<(?:\w{1,20}+:)?+pos(?:List)?\s(?![^<>]*srsDimension)[^<>]*?\b)" + OLD_NAME + rb"(?=\s*=\s*[\"']3[\"'])"
)
"""Positions of three numbers, which the driver would read as more positions of two."""
LONGEST_TAG = 16 << 10


def with_known_dimensions(path: Path, target: Path) -> tuple[Path, str]:
    """The file to read in place of the GML at `path`, and no warning. Blocking.

    It is `path` if no positions have three numbers by the old name; otherwise `target`, a new file whose directory is
    created if needed.
    """
    if not has_match(path, THREE_BY_OLD_NAME, OLD_NAME):
        return path, ""
    target.parent.mkdir(exist_ok=True)
    with target.open("xb") as file:
        file.writelines(THREE_BY_OLD_NAME.sub(rb"\1srsDimension", text) for text in _pieces(path))
    return target, ""


def _pieces(path: Path) -> Iterator[bytes]:
    """The content of the file at `path`, each piece but the last up to the end of a tag, unless it is a long one."""
    rest = b""
    for chunk in chunks(path):
        whole, end, rest = (rest + chunk).rpartition(b">")
        yield whole + end
        if len(rest) > LONGEST_TAG:
            yield rest
            rest = b""
    yield rest
