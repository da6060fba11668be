"""What every run may read and execute on this host, whatever it is given besides."""

import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sandbox.config import Config

# The linear algebra libraries that GDAL is linked with are links through /etc/alternatives.
_LIBRARIES = (
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
_LOADERS = ("/lib64/ld-linux*.so*", "/lib/ld-linux*.so*", "/lib/ld-musl*.so*")
_SHARED_PREFIXES = (Path("/usr"), Path("/usr/local"), Path("/"))


def readable(config: Config) -> tuple[Path, ...]:
    """Libraries, programs, Python, this package and what the configuration adds, as far as they are there."""
    extra = () if config.ogr2ogr is None or config.ogr2ogr.fork_server is None else (config.ogr2ogr.fork_server,)
    # What the Python server imports may lie elsewhere than the rest of Python.
    packages = (Path(__file__).resolve().parent, Path(msgspec.__file__).resolve().parent)
    paths = (*map(Path, _LIBRARIES), *_python(), *programs(config), *packages, *extra, *config.readable)
    return tuple(path for path in dict.fromkeys(paths) if path.exists())


def programs(config: Config) -> tuple[Path, ...]:
    """What may be executed."""
    ogr2ogr = () if config.ogr2ogr is None else (config.ogr2ogr.program,)
    return (Path(sys.executable), *ogr2ogr, *config.programs)


def loaders() -> tuple[Path, ...]:
    """The dynamic loaders, which the kernel executes on a program's behalf."""
    return tuple(path for pattern in _LOADERS for path in Path("/").glob(pattern.removeprefix("/")))


def _python() -> Iterator[Path]:
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix, sys.base_exec_prefix)):
        if Path(prefix) not in _SHARED_PREFIXES:
            yield Path(prefix)
    for name in ("stdlib", "platstdlib", "purelib", "platlib"):
        yield Path(sysconfig.get_path(name))
    yield from (Path(path) for path in site.getsitepackages())
