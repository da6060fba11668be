"""What services find out about the GDAL of this host, found out once for all in this process or forked from it.

Two starts of ogr2ogr and a copy of PROJ's database take a tenth of the time of a start. Another program, one that was
changed, and other variables are looked at anew, as are failures; services that are executed look for themselves.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from service.engine import capabilities
from service.engine.proj import DATABASE, private_database

T = TypeVar("T")

_VARIABLES = ("CPL_", "GDAL", "LD_", "OGR", "PATH", "PROJ")
"""How the names of those begin that a start of ogr2ogr may depend on."""


def look_once() -> None:
    """Remember from now on what is found out."""
    capabilities._output_of = _remembered(capabilities._output_of)
    capabilities.linked_with = _remembered(capabilities.linked_with)  # type: ignore[attr-defined]  # where `probe` looks it up
    capabilities.private_database = _private_database  # type: ignore[attr-defined]  # the same


def look_now() -> None:
    """Find out all of it, for what will be forked; a host without GDAL has none."""
    program = shutil.which("ogr2ogr")
    if program:
        with tempfile.TemporaryDirectory() as unused, suppress(capabilities.ConverterMissing):
            capabilities.probe(Path(program), Path(unused), {})


def _remembered(look: Callable[..., T]) -> Callable[..., T]:
    found: dict[object, T] = {}

    def remembered(program: Path, *arguments: str) -> T:
        if not program.is_file():
            return look(program, *arguments)
        file = program.stat()
        variables = frozenset(item for item in os.environ.items() if item[0].startswith(_VARIABLES))
        key = (program, file.st_ino, file.st_size, file.st_mtime_ns, variables, arguments)
        if key not in found:
            found[key] = look(program, *arguments)
        return found[key]

    return remembered


@cache
def _kept() -> "tempfile.TemporaryDirectory[str]":
    """Where copies of PROJ's database are, until this process ends."""
    return tempfile.TemporaryDirectory(prefix="geomill-tests-proj-")


def _private_database(original: Path, directory: Path) -> Path:
    """Link the copy that was made once into the directory, as if it had been made there."""
    made = private_database(original, Path(_kept().name))
    home = directory / made.name
    if made != original.parent and not home.exists():
        with suppress(OSError):  # what is in the way, or another file system, is told or dealt with below
            home.mkdir(parents=True)
            for each in (directory, home):
                each.chmod(0o755)
            (home / DATABASE).hardlink_to(made / DATABASE)
    return private_database(original, directory)
