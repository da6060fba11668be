"""Decides which differences in the environment a running process can adopt."""

from collections.abc import Mapping
from functools import lru_cache

# Read by the loader, the C library, Python, or GDAL and PROJ while they start.
_READ_AT_START = ("LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "PYTHON", "PROJ_", "GDAL_DATA", "GDAL_DRIVER_PATH", "OMP_")
_LEFT_OUT = ("GDAL_SKIP", "OGR_SKIP")


class StartEnvironment:
    """The environment with which a process was started."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._read = _at_start(environment)
        self._left_out = {option: _split(environment[option]) for option in _LEFT_OUT if option in environment}

    def can_become(self, wanted: Mapping[str, str]) -> bool:
        """Whether the process can adopt the environment `wanted` as if it had been started with it.

        Drivers that it has left out it cannot bring back, but it can leave out more.
        """
        return self._read == _at_start(wanted) and all(
            names <= _split(wanted.get(option, "")) for option, names in self._left_out.items()
        )


@lru_cache(maxsize=1024)
def _split(names: str) -> frozenset[str]:
    # With a comma as GDAL reads it; other lists are equal or not.
    return frozenset(names.split(","))


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _names_at_start(tuple(environment))}


@lru_cache
def _names_at_start(names: tuple[str, ...]) -> tuple[str, ...]:
    # Kept because there are some thirty, mostly the same for every run.
    return tuple(name for name in names if name.startswith(_READ_AT_START))
