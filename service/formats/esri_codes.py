"""What Esri JSON says about its coordinates that the driver takes for something else: codes of systems, measures."""

import re
from pathlib import Path

from service.formats.json_kinds import head_of, tail_of

LAST_OF_EPSG = 32_767
"""Larger codes are Esri's."""
_LATEST = re.compile(rb'"latestWkid"\s{0,8}:\s{0,8}(\d{4,6})\b')
_MEASURES = re.compile(rb'"hasM"\s{0,8}:\s{0,8}true\b')
_ELEVATIONS = re.compile(rb'"hasZ"\s{0,8}:\s{0,8}true\b')
_FIRST = re.compile(rb'"wkid"\s{0,8}:\s{0,8}(\d{4,6})\b')


def esri_code(path: Path) -> int:
    """The code of the system of the file at `path` if it is one of Esri's, otherwise 0. Blocking."""
    around = _around_features(path)
    found = _LATEST.search(around) or _FIRST.search(around)
    code = int(found[1]) if found else 0
    return code if code > LAST_OF_EPSG else 0


def has_measures_alone(path: Path) -> bool:
    """Whether the geometries of the file at `path` have measures and no elevations. Blocking."""
    around = _around_features(path)
    return _MEASURES.search(around) is not None and _ELEVATIONS.search(around) is None


def _around_features(path: Path) -> bytes:
    """Where the members are that describe the features: before these, or behind them."""
    return head_of(path) + tail_of(path)
