"""The environment of every converter: only the drivers that a run needs, no network, none of the host's settings."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from service.engine.capabilities import Capabilities
from service.engine.jailed.gpkg import MAX_LAYERS
from service.formats.table import FORMATS

NOWHERE = "127.0.0.1:1"
NOTHING_BEYOND_THE_FILE: Mapping[str, str] = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "CPL_TMPDIR": ".",
    "SQLITE_TMPDIR": ".",  # it prefers /var/tmp, which runs may see and cannot write to
    "GDAL_DRIVER_PATH": "disable",
    "PROJ_NETWORK": "OFF",
    "SPATIALITE_LOAD": "NO",  # its virtual tables can read any file of the host
    "OGR_SQLITE_STATIC_VIRTUAL_OGR": "NO",  # and so can GDAL's own
    "GML_DOWNLOAD_WFS_SCHEMA": "NO",
    "GML_SKIP_RESOLVE_ELEMS": "ALL",
    "OGR2OGR_USE_ARROW_API": "NO",  # it drops time zones, and does not report features that cannot be reprojected
    "GEOJSON_FLATTEN_GEOCOUCH": "NO",  # keeps nested properties as one value, as in any other GeoJSON
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none",
    "GDAL_HTTP_PROXY": NOWHERE,
    "GDAL_HTTPS_PROXY": NOWHERE,
    "http_proxy": f"http://{NOWHERE}",
    "https_proxy": f"http://{NOWHERE}",
    "all_proxy": f"http://{NOWHERE}",
}
SPEED: Mapping[str, str] = {
    "OGR_SQLITE_SYNCHRONOUS": "OFF",
    "OGR_SQLITE_JOURNAL": "OFF",  # a crash ends the job anyway
    "OGR_GEOJSON_MAX_OBJ_SIZE": "0",  # the memory limit applies instead
    # A GeoPackage of more is refused; opening all takes a time that grows with their square.
    "OGR_TABLE_LIMIT": str(MAX_LAYERS + 1),
}
ONE_THREAD: Mapping[str, str] = {
    "GDAL_NUM_THREADS": "1",
    "OGR_GPKG_STREAM_BASE_IMPL": "YES",
    "OGR_GPKG_ALLOW_THREADED_RTREE": "NO",  # from 100,000 features on, GDAL 3.10 indexes in a thread
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""The sandbox allows a run no further threads or processes, and programs that try to create some fail."""
AT_THEIR_WORD: Mapping[str, str] = {"OSR_USE_NON_DEPRECATED": "NO"}
"""The deprecated code of a system stands for what it says, not for its successor, which may differ."""
_SHARED = {**NOTHING_BEYOND_THE_FILE, **SPEED, **ONE_THREAD, **AT_THEIR_WORD}
VIRTUAL_DRIVER = "OGR_VRT"
MEMORY_DRIVERS = ("Memory", "MEM")
"""The driver that holds tables in memory, by its old and its new name."""
_DRIVERS = frozenset(
    {
        VIRTUAL_DRIVER,
        *MEMORY_DRIVERS,
        *(driver for row in FORMATS if row.reading is not None for driver in row.reading.drivers),
        *(row.writing.driver for row in FORMATS if row.writing is not None),
    }
)
"""All drivers that runs may use."""


def converter_environment(
    capabilities: Capabilities, drivers: Iterable[str], extra: Mapping[str, str] = {}
) -> dict[str, str]:
    """The complete environment of a GDAL program that may use only `drivers`."""
    skipped = _skipped(frozenset(capabilities.drivers), frozenset(drivers))
    return {**_SHARED, **_data_directories(capabilities), **extra, "GDAL_SKIP": skipped}


@lru_cache
def _skipped(available: frozenset[str], used: frozenset[str]) -> str:
    """The drivers to skip, for GDAL; kept because there are some eighty, and few sets of drivers are used."""
    return ",".join(sorted(available - used))


def prepared_environment(capabilities: Capabilities) -> dict[str, str]:
    """The environment for a launcher that keeps the program prepared: with every driver that any run may use."""
    return converter_environment(capabilities, _DRIVERS)


def wheel_environment(capabilities: Capabilities, library: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The complete environment of `jailed.wheel`: as that of a GDAL program, with the data that belong to its GDAL."""
    package = Path(library).parent.with_suffix("")
    data = {
        "PROJ_LIB": f"{package}/proj_data",
        "PROJ_DATA": f"{package}/proj_data",
        "GDAL_DATA": f"{package}/gdal_data",
    }
    return {**_SHARED, **data, **extra, **python_environment(capabilities)}


def python_environment(capabilities: Capabilities) -> dict[str, str]:
    """The complete environment of one of our programs in the sandbox."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": capabilities.modules.path,
        "PYTHONSAFEPATH": "1",  # the untrusted file controls the working directory
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve a GiB of addresses, which a run is allowed for all
        **ONE_THREAD,
        **AT_THEIR_WORD,
    }


def _data_directories(capabilities: Capabilities) -> dict[str, str]:
    proj = ":".join(capabilities.proj_directories)
    found = {"PROJ_LIB": proj, "PROJ_DATA": proj}
    return found | ({"GDAL_DATA": capabilities.gdal_data} if capabilities.gdal_data else {})
