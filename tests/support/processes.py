"""Processes of the tests: how they end, and their figures of memory."""

import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import IO

_HEAP_BYTES = 64 << 20
"""glibc reserves so much for each heap of a thread, at an address that it divides, and opens it from its start on."""

_STARTER = ThreadPoolExecutor(1)
"""Its thread lives as long as this process."""


def start_companion(
    command: Sequence[str], *, stdout: IO[str] | None = None, stderr: IO[str]
) -> subprocess.Popen[bytes]:
    """Start a program that ends with this process, however that ends.

    A worker of xdist is killed if its run is interrupted. The kernel ends the program with the thread that started it.
    """
    line = ["setpriv", "--pdeathsig", "KILL", *command]  # a program that becomes the command
    return _STARTER.submit(subprocess.Popen, line, stdout=stdout, stderr=stderr).result()


def resident_bytes(pid: int | str) -> int:
    """The resident memory of the process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def heaps_of_threads(pid: int | str) -> int:
    """How many heaps glibc has created for threads, besides the main one."""
    maps = re.findall(r"^(\w+)-(\w+) (\S{4}) \S+ 00:00 0\s*$", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
    areas = [(int(start, 16), int(end, 16), mode) for start, end, mode in maps]
    return sum(
        opened[2] == "rw-p"
        and reserved[2] == "---p"
        and opened[0] % _HEAP_BYTES == 0
        and (opened[1], opened[0] + _HEAP_BYTES) == reserved[:2]
        for opened, reserved in pairwise(areas)
    )
