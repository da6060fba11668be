"""Renames geometries of AIXM that have an elevation: the driver knows some of them in messages of AIXM only."""

import re
from pathlib import Path

from service.formats.left_out import has_match
from service.formats.mending import Mending
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


def without_elevated(path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
    """As `Mend`: a file with values of such names stays as it is."""
    with opened(path) as file:
        renamed = OF_MESSAGES if MESSAGE.search(file.read(HEAD_BYTES)) else OF_OTHERS
    if has_match(text or path, VALUE, ELEVATED):
        return path, ""
    return Mending(renamed, rb"\g<begin>\g<kind>", within=ELEVATED)(path, target, text)
