"""Codes of coordinate systems that Esri gives, in files of Esri JSON."""

import re
from pathlib import Path

from service.formats.json_kinds import head_of

LAST_OF_EPSG = 32_767
"""Larger codes are Esri's."""
_LATEST = re.compile(rb'"latestWkid"\s{0,8}:\s{0,8}(\d{4,6})\b')
_FIRST = re.compile(rb'"wkid"\s{0,8}:\s{0,8}(\d{4,6})\b')


def esri_code(path: Path) -> int:
    """The code of the system of the file at `path` if it is one of Esri's, otherwise 0. Blocking."""
    head = head_of(path)
    found = _LATEST.search(head) or _FIRST.search(head)
    code = int(found[1]) if found else 0
    return code if code > LAST_OF_EPSG else 0
