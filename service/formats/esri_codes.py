"""What Esri JSON says about its coordinates that the driver takes for something else: codes of systems, measures."""

import re
from pathlib import Path

from service.formats.json_kinds import head_of
from service.formats.opened import opened

LAST_OF_EPSG = 32_767
"""Larger codes are Esri's."""
_LATEST = re.compile(rb'"latestWkid"\s{0,8}:\s{0,8}(\d{4,6})\b')
_MEASURES = re.compile(rb'"hasM"\s{0,8}:\s{0,8}true\b')
_ELEVATIONS = re.compile(rb'"hasZ"\s{0,8}:\s{0,8}true\b')
TAIL_BYTES = 4096
_FIRST = re.compile(rb'"wkid"\s{0,8}:\s{0,8}(\d{4,6})\b')


def esri_code(path: Path) -> int:
    """The code of the system of the file at `path` if it is one of Esri's, otherwise 0. Blocking."""
    head = head_of(path)
    found = _LATEST.search(head) or _FIRST.search(head)
    code = int(found[1]) if found else 0
    return code if code > LAST_OF_EPSG else 0


def has_measures_alone(path: Path) -> bool:
    """Whether the geometries of the file at `path` have measures and no elevations. Blocking.

    The members that say so precede the features, or follow them.
    """
    with opened(path) as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        around = head_of(path) + file.read()
    return _MEASURES.search(around) is not None and _ELEVATIONS.search(around) is None
