"""Which differences between two environments a process that already runs can take over."""

from collections.abc import Mapping

# Read by the loader, the C library, Python, or GDAL and PROJ while they start.
_READ_AT_START = ("LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "PYTHON", "PROJ_", "GDAL_DATA", "GDAL_DRIVER_PATH", "OMP_")


def can_become(started: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether a process that was started with one environment can go on with the other as if started with it."""
    return _at_start(started) == _at_start(wanted)


def _at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}
