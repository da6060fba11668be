"""Finds what a .mif says that its driver does not follow, or that its .mid contradicts.

A .mid may be in UTF-8 although its .mif declares another charset, in which the driver reads it.
"""

import re
from pathlib import Path

from service.formats.dbf_encoding import UTF8, encoding_from
from service.formats.left_out import pieces_to
from service.formats.names import shown
from service.formats.opened import opened

HEAD_BYTES = 4096
CHARSET = re.compile(rb'^\s*+charset\s++"(?P<name>[^"\r\n]{1,40})"', re.IGNORECASE | re.MULTILINE)
AFFINE = re.compile(rb"^\s*+coordsys\b[^\r\n]*?\baffine\b", re.IGNORECASE | re.MULTILINE)
_UNIT, _NUMBER = rb"\"[^\"\r\n]{1,20}\"", rb"[-+.\deE]++"
_START = rb"^[ \t]*+coordsys\s++earth\s++projection\s++%b\s*+,\s*+\d++\s*+,\s*+" + _UNIT
_ORIGIN = rb"(?:\s*+,\s*+%b){%d}\s*+,\s*+(?P<east>%b)\s*+,\s*+(?P<north>%b)[ \t]*+(?:bounds\b|\r?$)"
UNREAD_ORIGINS = tuple(
    re.compile(_START % projection + _ORIGIN % (_NUMBER, count, _NUMBER, _NUMBER), re.IGNORECASE | re.MULTILINE)
    for projection, count in ((rb"(?:4|5|28|29)", 3), (rb"26", 2))
)
"""Azimuthal systems, and Mercator's, with an origin, before which the driver stops reading."""
AFFINE_UNREAD = (
    "The coordinate system of the {file} has an affine transformation (Affine), which was not applied, so all "
    "places are off. Save the table in a system without one, and send it again."
)
ORIGIN_UNREAD = (
    "The coordinate system of the {file} has a false easting and northing of {east} and {north}, which were not "
    "read: unless you have sent sourceEpsg, all places are off by as much. If the system has an EPSG code, send it "
    "as sourceEpsg."
)
CURVES = re.compile(rb"^[ \t]*+(?:arc|ellipse|roundrect)[ \t]++[-+.\d]", re.IGNORECASE | re.MULTILINE)
CURVES_BECAME = "Arcs, ellipses and rounded rectangles ({count:,}) became lines and areas of short segments."
LONGEST_LINE = 16 << 10
COPIED = frozenset({"neutral", "utf-8"})
"""The charsets of which the text is taken as it is."""


def affine_warning(mif: Path) -> str:
    """What to tell of coordinates that `mif` says are to be changed, which the driver does not do. Blocking."""
    with opened(mif) as file:
        if not AFFINE.search(file.read(HEAD_BYTES)):
            return ""
    return AFFINE_UNREAD.format(file=".mif")


def origin_warning(mif: Path) -> str:
    """What to tell of an origin of coordinates in `mif` that the driver does not read. Blocking."""
    with opened(mif) as file:
        head = file.read(HEAD_BYTES)
    found = next(filter(None, (pattern.search(head) for pattern in UNREAD_ORIGINS)), None)
    if found is None or not (found["east"] + found["north"]).strip(b"+-.0"):
        return ""
    east, north = (found[name].decode() for name in ("east", "north"))
    return ORIGIN_UNREAD.format(file=".mif", east=east, north=north)


def curves_warning(mif: Path) -> str:
    """What to tell of objects of `mif` that the driver turns into lines. Blocking."""
    count = sum(len(CURVES.findall(text)) for text in pieces_to(mif, b"\n", LONGEST_LINE))
    return CURVES_BECAME.format(count=count) * (count > 0)


def charset_warning(mif: Path, mid: Path) -> str:
    """What to tell of the charset that `mif` declares for `mid`; "" if it may be right. Blocking."""
    with opened(mif) as file:
        found = CHARSET.search(file.read(HEAD_BYTES))
    name = found["name"].decode("ascii", "replace") if found else "Neutral"
    if name.casefold() in COPIED:
        return ""
    with opened(mid) as file:
        if encoding_from(file) != UTF8:
            return ""
    return (
        f"Texts were read in the charset {shown(name)!r}, which the .mif declares, but look like UTF-8: "
        'letters such as ü became others. Declare Charset "UTF-8" there and send it again.'
    )
