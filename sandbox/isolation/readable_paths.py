"""What runs may read and execute on this host; anything else can be neither seen nor opened."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from sandbox.config import Config
from sandbox.interpreter import PYTHON

# The linear algebra libraries that GDAL is linked with are links through /etc/alternatives.
_SYSTEM = (
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr/lib",
    "/usr/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
)
_LOCAL = Path("/usr/local/lib")
_LIBRARIES = ("*.so", "*.so.*", "*-linux-*/*.so", "*-linux-*/*.so.*")
_LOADERS = ("/lib64/ld-linux*.so*", "/lib/ld-linux*.so*", "/lib/ld-musl*.so*")
_BESIDE_THE_STANDARD_LIBRARY = ("site-packages", "dist-packages")


def for_every_program(config: Config) -> tuple[Path, ...]:
    """The system's libraries and what the configuration adds, as far as they exist."""
    return _existing((*map(Path, _SYSTEM), *_libraries_in(_LOCAL), *config.readable))


def for_python(config: Config) -> tuple[Path, ...]:
    """What Python programs read in addition: the standard library, this package and the configured packages."""
    ours = (Path(__file__).resolve().parents[1], Path(msgspec.__file__).resolve().parent)
    virtual = () if sys.prefix == sys.base_prefix else (Path(sys.prefix, "pyvenv.cfg"),)
    linked = _libraries_in(Path(sys.base_exec_prefix, "lib"))
    return _existing((*virtual, *linked, *_standard_library(), *ours, *config.python.packages))


def everything(config: Config) -> tuple[Path, ...]:
    """Everything that any run may read, and therefore the contents of the shared root."""
    server = () if config.ogr2ogr is None or config.ogr2ogr.fork_server is None else (config.ogr2ogr.fork_server,)
    return _existing((*for_every_program(config), *for_python(config), *programs(config), *server))


def hidden() -> tuple[Path, ...]:
    """Directories within the standard library that hold third-party packages, which no run needs as a whole."""
    return _existing(library / name for library in _standard_library() for name in _BESIDE_THE_STANDARD_LIBRARY)


def programs(config: Config) -> tuple[Path, ...]:
    """The programs that may be executed."""
    ogr2ogr = () if config.ogr2ogr is None else (config.ogr2ogr.program,)
    return (Path(PYTHON), *ogr2ogr, *config.programs)


def loaders() -> tuple[Path, ...]:
    """The dynamic loaders, which the kernel executes on a program's behalf."""
    return tuple(path for pattern in _LOADERS for path in Path("/").glob(pattern.removeprefix("/")))


def _libraries_in(directory: Path) -> Iterator[Path]:
    """Only the libraries: a directory of self-installed software may hold anything else as well."""
    return (path for pattern in _LIBRARIES for path in directory.glob(pattern))


def _standard_library() -> tuple[Path, ...]:
    base = {"platbase": sys.base_exec_prefix, "installed_platbase": sys.base_exec_prefix}
    found = (Path(os.__file__).parent, Path(sysconfig.get_path("platstdlib", vars=base)))
    return tuple(dict.fromkeys(found))


def _existing(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path for path in dict.fromkeys(paths) if path.exists())
