"""Releases of GDAL, between which its drivers differ: "3.9-" are those from 3.9 on, "-3.9" those before it."""

import re
from functools import cache


@cache
def covers(releases: str, version: str) -> bool:
    """Whether a version, such as "3.13.3", is one of `releases`; an unknown version counts as an old one."""
    since, _, until = map(_numbers, releases.partition("-"))
    own = _numbers(version)
    return since <= own and (not until or own < until)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)))
