"""Reads the name of the encoding in a .cpg, of which programs write forms that GDAL does not know."""

import re
from pathlib import Path

from service.formats.opened import opened

HEAD_BYTES = 100
"""More than any name of an encoding has."""
BY_NUMBER = re.compile(
    r"(?:x-)?(?:oem|ansi|dos|ms-?dos|ms|ibm|cp|win(?:dows)?|microsoft-cp|code ?page)?[ _:-]?(?P<number>\d{3,4})"
)
PAGES = frozenset(
    {437, 737, 775, 850, 852, 855, 857, 858, 860, 861, 862, 863, 864, 865, 866, 869, 874, 932, 936, 949, 950}
    | set(range(1250, 1259))
)
"""The code pages that are the same under every name."""
ASCII = frozenset({"us-ascii", "ascii"})
"""In this encoding, the driver would leave out all other letters without a warning; all such text is UTF-8, too."""
WIDE = re.compile(r"(?:utf|ucs)[ _-]?(?:16|32|2|4)[ _-]?(?:[lb]e)?|unicode|iso-10646-ucs-[24]")
"""Encodings of several bytes for each letter, in which the driver would read the names of columns, too."""
SPELLED = re.compile(r"(?P<family>iso[ _-]?8859|koi8)[ _-]?(?P<part>\d{1,2}|[ru])")
FAMILIES = {"i": "ISO-8859", "k": "KOI8"}


def impossible_encoding(cpg: Path) -> str:
    """What `cpg` declares if no .dbf can be in it, otherwise "". Blocking."""
    name = _name_in(cpg)
    return name if WIDE.fullmatch(name) else ""


def declared_encoding(cpg: Path) -> str:
    """The name by which GDAL knows what `cpg` declares; "" if it is to be read as it is. Blocking."""
    name = _name_in(cpg)
    if name in ASCII:
        return "UTF-8"
    page, spelled = BY_NUMBER.fullmatch(name), SPELLED.fullmatch(name)
    if page and int(page["number"]) in PAGES:
        return f"CP{page['number']}"
    return f"{FAMILIES[name[0]]}-{spelled['part'].upper()}" if spelled else ""


def _name_in(cpg: Path) -> str:
    with opened(cpg) as file:
        return file.read(HEAD_BYTES).decode("ascii", "replace").strip().lower()
