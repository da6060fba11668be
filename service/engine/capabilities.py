"""Determines what this host's GDAL offers, once at start-up (interface 1, 10)."""

import importlib.util
import mmap
import re
import subprocess
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from sandbox.interpreter import PYTHON
from sandbox.libraries import linked_with, outside_the_system
from service.engine.jailed.wheel import READING
from service.engine.modules import Modules, linked_modules
from service.engine.proj import DATABASE, private_database
from service.formats.format import Format, Reader, Writer
from service.formats.offer import Availability
from service.formats.releases import covers
from service.formats.table import FORMATS

DRIVER_LINE = re.compile(r"^ {2}(?P<name>.+?) -(?P<kinds>[a-z ,]+)- \((?P<abilities>[a-z+]+)\)")
VERSION = re.compile(r"GDAL (?P<version>[\w.]+)")
LIBRARY = re.compile(r"libgdal\.so\.\d+\.(?P<version>\d+\.\d+\.\d+)")
"""The name of GDAL's library, which has its version behind that of its interface."""
PROBE_SECONDS = 30
INSTALL_GDAL = (
    "Install GDAL (Debian: apt-get install gdal-bin; macOS: brew install gdal) or set GEOMILL_OGR2OGR to the program's "
    "path."
)
PARQUET_MODULES = ("pyarrow", "pyogrio")


class ConverterMissing(Exception):
    """The host has no usable ogr2ogr; the message says what to do."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The converter of this host and its capabilities. All paths are absolute."""

    ogr2ogr: str
    version: str
    drivers: Mapping[str, str]
    """Every driver with its abilities as GDAL writes them: "ro", "rw+v"."""
    python: str
    libraries: tuple[str, ...]
    """The libraries that ogr2ogr is linked with, outside the system's directories."""
    modules: Modules
    """The modules that our programs in the sandbox import."""
    proj_directories: tuple[str, ...]
    gdal_data: str
    has_arrow: bool
    """Whether pyarrow and pyogrio are installed, which handle GeoParquet if GDAL does not."""
    spare: Mapping[str, str] = {}
    """Drivers that ogr2ogr lacks, but the GDAL in the wheel of pyogrio has, each with the library of that GDAL."""

    @property
    def proj_database(self) -> Path:
        """The proj.db in use; a host without GDAL has none."""
        return Path(*self.proj_directories[:1], DATABASE)

    @property
    def readable(self) -> tuple[Path, ...]:
        """What ogr2ogr and our programs read in addition to the system's libraries."""
        return tuple(Path(path) for path in (*self.libraries, self.gdal_data, *self.proj_directories) if path)

    @property
    def packages(self) -> tuple[Path, ...]:
        """What our programs import."""
        return tuple(map(Path, self.modules.packages))

    @property
    def formats(self) -> tuple[Availability, ...]:
        """Every format with its availability."""
        return tuple(_availability(row, self) for row in FORMATS)

    def can_read(self, driver: str) -> bool:
        """Whether GDAL, or the one in the wheel of pyogrio, has `driver`."""
        return driver in self.drivers or driver in self.spare

    def spare_for(self, drivers: Iterable[str]) -> str:
        """The library of the other GDAL, if it is needed for one of `drivers`; otherwise empty."""
        return next((self.spare[driver] for driver in drivers if driver in self.spare), "")

    def is_of(self, releases: str) -> bool:
        """Whether GDAL is of one of `releases`, as `formats.releases` writes them; "" are none."""
        return bool(releases) and covers(releases, self.version)

    def can_write(self, driver: str) -> bool:
        """Whether GDAL has `driver` and it creates files."""
        return "+" in self.drivers.get(driver, "")


def probe(ogr2ogr: Path, data_dir: Path, environment: Mapping[str, str]) -> Capabilities:
    """Inspect the `ogr2ogr` of this host. Blocks, for up to a second the first time; later starts take 0.1 s.

    Args:
        ogr2ogr: the program, absolute.
        data_dir: holds the private copy of PROJ's database and the directory of links to our packages.
        environment: PROJ_LIB, PROJ_DATA and GDAL_DATA, if they are to replace the default locations of data.

    Raises:
        ConverterMissing: the program does not exist, does not run, or is another; or there is no database of coordinate
            systems.
    """
    listing = _output_of(ogr2ogr, "--formats")
    drivers = {match["name"]: match["abilities"] for match in map(DRIVER_LINE.match, listing.splitlines()) if match}
    if not drivers:
        raise ConverterMissing(f"{ogr2ogr} is not ogr2ogr: it lists no formats. {INSTALL_GDAL}")
    libraries = linked_with(ogr2ogr)
    prefix = ogr2ogr.resolve().parent.parent
    proj = _proj_directory(prefix, environment)
    return Capabilities(
        ogr2ogr=str(ogr2ogr),
        version=_version_in(libraries) or _told_version(ogr2ogr),
        drivers=drivers,
        python=PYTHON,
        libraries=tuple(map(str, outside_the_system(libraries))),
        modules=linked_modules(data_dir / "modules"),
        proj_directories=(str(private_database(proj / DATABASE, data_dir / "proj")), str(proj)),
        gdal_data=environment.get("GDAL_DATA") or _existing(prefix / "share" / "gdal"),
        has_arrow=all(importlib.util.find_spec(name) is not None for name in PARQUET_MODULES),
        spare=spare_drivers(READING.keys() - drivers.keys()),
    )


def without_gdal(data_dir: Path) -> Capabilities:
    """Return what a host needs that converts nothing: our own programs in the sandbox, no GDAL and no PROJ."""
    return Capabilities(
        ogr2ogr="",
        version="",
        drivers={},
        python=PYTHON,
        libraries=(),
        modules=linked_modules(data_dir / "modules"),
        proj_directories=(),
        gdal_data="",
        has_arrow=False,
    )


def spare_drivers(missing: Collection[str]) -> dict[str, str]:
    """Those of the missing drivers that the GDAL in the wheel of pyogrio has, if it is a wheel that brings one."""
    found = importlib.util.find_spec("pyogrio") if missing else None
    if found is None or found.origin is None:
        return {}
    beside = Path(found.origin).resolve().parent.with_name("pyogrio.libs")
    return {driver: str(library) for library in beside.glob("libgdal-*.so*") for driver in _defined(missing, library)}


def _defined(drivers: Iterable[str], library: Path) -> list[str]:
    """Those of the drivers that are in a library, by the names of its functions."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [driver for driver in drivers if content.find(b"\0%b\0" % READING[driver].encode()) >= 0]


def _version_in(libraries: Iterable[Path]) -> str:
    """The version in the name of GDAL's library, which saves a start of the program; empty if it has none."""
    names = (path.resolve().name for path in libraries)
    return next((match["version"] for match in map(LIBRARY.fullmatch, names) if match), "")


def _told_version(ogr2ogr: Path) -> str:
    version = VERSION.search(_output_of(ogr2ogr, "--version"))
    return version["version"] if version else "unknown"


def _output_of(program: Path, argument: str) -> str:
    try:
        done = subprocess.run(
            [program, argument], capture_output=True, timeout=PROBE_SECONDS, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConverterMissing(f"{program} cannot be run ({_cause(error)}). {INSTALL_GDAL}") from None
    return done.stdout.decode("utf-8", "replace")


def _cause(error: OSError | subprocess.SubprocessError) -> str:
    """What the system or the program says, in one line."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it did not end within {PROBE_SECONDS} seconds"
    if isinstance(error, subprocess.CalledProcessError):
        said = error.stderr.decode("utf-8", "replace").split("\n")
        ended = f"signal {-error.returncode}" if error.returncode < 0 else f"exit code {error.returncode}"
        return ": ".join([ended, *[line.strip() for line in said if line.strip()][-1:]])
    return getattr(error, "strerror", None) or type(error).__name__


def _proj_directory(prefix: Path, environment: Mapping[str, str]) -> Path:
    listed = f"{environment.get('PROJ_DATA', '')}:{environment.get('PROJ_LIB', '')}".split(":")
    candidates = [Path(name) for name in listed if name] + [
        root / "share" / "proj" for root in (prefix, Path("/usr"), Path("/usr/local"), Path("/opt/homebrew"))
    ]
    for candidate in candidates:
        if (candidate / DATABASE).is_file():
            return candidate.resolve()
    raise ConverterMissing(
        "PROJ's database proj.db was not found beside GDAL or in the system. Install it (Debian: proj-data)."
    )


def _existing(path: Path) -> str:
    return str(path) if path.is_dir() else ""


def _availability(row: Format, host: Capabilities) -> Availability:
    reading, writing = row.reading, row.writing
    reads_by_arrow = reading is not None and reading.reader is Reader.PARQUET
    writes_by_arrow = writing is not None and writing.writer is Writer.PARQUET
    reads = (reads_by_arrow and host.has_arrow) or any(map(host.can_read, reading.drivers if reading else ()))
    writes = (writes_by_arrow and host.has_arrow) or (writing is not None and host.can_write(writing.driver))
    reason = ""
    if writing is not None and not writes:
        reason = _lack_of(writing.driver, host, by_arrow=writes_by_arrow)
    elif reading is not None and not reads:
        reason = _lack_of(reading.drivers[0], host, by_arrow=reads_by_arrow)
    return Availability(token=row.token, input=reads, output=writes, reason=reason)


def _lack_of(driver: str, host: Capabilities, *, by_arrow: bool) -> str:
    if by_arrow:
        return (
            f"GDAL {host.version} has no {driver} driver and the packages {' and '.join(PARQUET_MODULES)} are missing."
        )
    lacks = "cannot write with its" if driver in host.drivers else "has no"
    told = f"GDAL {host.version} {lacks} {driver} driver"
    return (
        f"{told}, and there is no wheel of pyogrio with one. Install it (pip install pyogrio)."
        if driver in READING
        else f"{told}."
    )
