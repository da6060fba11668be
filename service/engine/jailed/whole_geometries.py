"""Writes each geometry of a WKT file on one line. Runs in the sandbox."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from service.engine.jailed.delimited import encoding_of
from service.engine.jailed.places import GEOMETRY_TEXT, WITH_PARTS

EMPTY = re.compile(r"\bEMPTY\s*$", re.IGNORECASE)


def whole_geometries(lines: Iterable[str]) -> Iterator[str]:
    """The geometries, which end where as many parentheses are closed as were opened, or with EMPTY.

    Other lines stay as they are, and a geometry that is not closed ends before the next one, unless that may be a part
    of it; those that may be parts of one that is not closed up to the end are geometries of their own.
    """
    parts: list[str] = []
    depth = 0
    for line in lines:
        part = " ".join(line.split())
        begins = _begins(part)
        if parts and begins and not (WITH_PARTS.match(parts[0]) and parts[-1].endswith(("(", ","))):
            yield " ".join(parts)
            parts, depth = [], 0
        if not parts and not begins:
            yield part
            continue
        if part:
            parts.append(part)
        depth += part.count("(") - part.count(")")
        if depth <= 0 and (")" in part or EMPTY.search(part)):
            yield " ".join(parts)
            parts, depth = [], 0
    if any(map(_begins, parts[1:])):
        yield from parts
    elif parts:
        yield " ".join(parts)


def _begins(line: str) -> bool:
    """Whether a geometry begins with this line, which may end behind the name of its type."""
    return GEOMETRY_TEXT.match(line) is not None or GEOMETRY_TEXT.match(f"{line} (") is not None


def main(wkt_file: str, whole_file: str) -> None:
    """Write what `wkt_file` holds to `whole_file`, in UTF-8."""
    with (
        Path(wkt_file).open(encoding=encoding_of(wkt_file), errors="replace") as lines,
        Path(whole_file).open("w", encoding="utf-8") as whole,
    ):
        whole.writelines(f"{geometry}\n" for geometry in whole_geometries(lines))
