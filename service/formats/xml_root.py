"""Refuses XML that lacks the outermost element of its format, which drivers call damaged."""

import re
from pathlib import Path

from service.errors import Rejection
from service.formats.format import Format, reading_of
from service.formats.names import shown
from service.formats.opened import opened

HEAD_BYTES = 16 << 10
ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?+(?:\s|<\?[^?]*+\?>|<!--(?:[^-]|-(?!->))*+-->|<!DOCTYPE[^<>\[]*+>)*+"
    rb"<(?:[\w.-]{1,40}:)?(?P<name>[\w.-]{1,40})[\s/>]"
)
"""The first element, after comments and the like."""


def require_root(row: Format, path: Path) -> None:
    """Refuse the file at `path` if it begins with what the outermost element of the format `row` should hold.

    Blocking. What is of another kind, in UTF-16, or begins with more than comments, is left to the driver.

    Raises:
        Rejection: names the element, and what to do.
    """
    tag = reading_of(row).root
    if not tag:
        return
    with opened(path) as file:
        found = ROOT.match(file.read(HEAD_BYTES))
    name = tag.removeprefix("<").partition(" ")[0]
    if found is not None and found["name"].decode() in reading_of(row).inside_root:
        what = f"A document of the {row.title}" if reading_of(row).member else "The file"
        raise Rejection(
            f"{what} begins with <{shown(found['name'].decode())}> instead of <{name}>. Put {tag} before it and "
            f"</{name}> at the end."
        )
