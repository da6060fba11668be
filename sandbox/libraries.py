"""The libraries that a program is linked with, as the loader reports them."""

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

_SECONDS = 30
_LOADED = re.compile(r"^\t(?:\S+ => )?(?P<path>/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_SYSTEM = tuple(Path(os.path.realpath(name)) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64"))


def linked_with(program: Path) -> tuple[Path, ...]:
    """All libraries of `program`.

    The program does not run: glibc's loader lists the libraries and ends. Empty with another loader; those of its
    interpreter for a script.
    """
    environment = {"LD_TRACE_LOADED_OBJECTS": "1", "LC_ALL": "C.UTF-8"}
    try:
        listing = subprocess.run(
            [program], env=environment, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(dict.fromkeys(Path(match["path"]) for match in _LOADED.finditer(listing)))


def outside_the_system(libraries: Iterable[Path]) -> tuple[Path, ...]:
    """Those of `libraries` that are not in the system's directories, which all runs can read anyway."""
    return tuple(path for path in libraries if not any(map(path.resolve().is_relative_to, _SYSTEM)))
