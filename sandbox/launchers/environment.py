"""Which differences between two environments a process that already runs can take over."""

from collections.abc import Mapping
from functools import lru_cache

# Read by the loader, the C library, Python, or GDAL and PROJ while they start.
_READ_AT_START = ("LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "PYTHON", "PROJ_", "GDAL_DATA", "GDAL_DRIVER_PATH", "OMP_")
_LEFT_OUT = ("GDAL_SKIP", "OGR_SKIP")


def can_become(started: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a process that was started with one environment can go on with the other as if started with it.

    Drivers that it has left out it cannot bring back, but it can leave out more.
    """
    return _at_start(started) == _at_start(wanted) and all(
        _names(started, option) <= _names(wanted, option) for option in _LEFT_OUT if option in started
    )


def _names(environment: Mapping[str, str], option: str) -> frozenset[str]:
    return _split(environment.get(option, ""))


@lru_cache(maxsize=1024)
def _split(names: str) -> frozenset[str]:
    # With a comma as GDAL reads it; other lists are equal or not.
    return frozenset(names.split(","))


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}
