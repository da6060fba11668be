"""Refuses XML whose outermost element is not that of its format, which drivers call damaged."""

import re
from pathlib import Path

from service.errors import Rejection
from service.formats.format import Format, reading_of
from service.formats.names import shown

HEAD_BYTES = 16 << 10
ROOT = re.compile(
    rb"(?:\xef\xbb\xbf)?+(?:\s|<\?[^?]*+\?>|<!--(?:[^-]|-(?!->))*+-->|<!DOCTYPE[^<>\[]*+>)*+"
    rb"<(?:[\w.-]{1,40}:)?(?P<name>[\w.-]{1,40})[\s/>]"
)
"""The first element, after comments and the like."""


def require_root(row: Format, path: Path) -> None:
    """Refuse the file at `path` if its outermost element is another than that of the format `row`.

    Blocking. What is in UTF-16, or begins with more than comments, is left to the driver.

    Raises:
        Rejection: names the element, and what to do.
    """
    tag = reading_of(row).root
    if not tag:
        return
    with path.open("rb") as file:
        found = ROOT.match(file.read(HEAD_BYTES))
    name = tag.removeprefix("<").partition(" ")[0]
    if found is not None and found["name"] != name.encode():
        what = f"A document of the {row.title}" if reading_of(row).member else "The file"
        raise Rejection(
            f"{what} begins with <{shown(found['name'].decode())}>, where <{name}> has to be. If the rest of it is "
            f"right, put {tag} before that and </{name}> at its end."
        )
