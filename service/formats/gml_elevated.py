"""Renames geometries of AIXM that have an elevation: the driver knows some of them in messages of AIXM only."""

import re
from pathlib import Path

from service.formats.left_out import has_match, pieces_to, written
from service.formats.opened import opened

ELEVATED = b"Elevated"
HEAD_BYTES = 16 << 10
MESSAGE = re.compile(rb"<(?:[\w.-]{1,20}+:)?+AIXMBasicMessage[\s>]")
"""What the driver knows AIXM by. Then it reads elevations of points into columns."""
_NAMED = rb"(?P<begin></?+(?:[\w.-]++:)?+)Elevated(?P<kind>%b)(?=[\s/>])"
OF_MESSAGES, OF_OTHERS = (re.compile(_NAMED % kinds) for kinds in (rb"Curve", rb"Point|Curve|Surface"))
VALUE = re.compile(rb"<(?:[\w.-]++:)?+Elevated(?:Point|Curve|Surface)(?=[\s/>])[^<>]*+(?:(?<=/)>|>\s*+(?:[^<\s]|</))")
"""An element of such a name that holds no other elements, and so no geometry."""
_SAYS = rb"(?:\w{1,20}+:)?+%b\b[^<>]*+(?:(?<=/)>|>[^<]*+</[^<>]*+>)\s*+"
ELEVATIONS = (
    rb"<"
    + _SAYS % rb"elevation"
    + rb"(?:<"
    + _SAYS % rb"(?:geoidUndulation|vertical(?:Datum|Accuracy))"
    + rb")*+</(?:\w{1,20}+:)?+(?:Point|Curve|(?:Elevated)?+Surface)>"
)
"""Elevations of geometries that have been renamed, and of areas in messages."""
LONGEST_TAG = 16 << 10


def without_elevated(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """The file to read in place of the GML at `path`, and no warning. Blocking.

    It is `path` if it has no such geometries, or values with their names; otherwise `target`, a new file whose
    directory is created if needed. `text` is where to look for them, if not in the file itself.
    """
    with opened(path) as file:
        renamed = OF_MESSAGES if MESSAGE.search(file.read(HEAD_BYTES)) else OF_OTHERS
    if not has_match(text or path, renamed, ELEVATED) or has_match(text or path, VALUE, ELEVATED):
        return path, ""
    pieces = pieces_to(path, b">", LONGEST_TAG)
    return written(target, (renamed.sub(rb"\g<begin>\g<kind>", piece) for piece in pieces)), ""
