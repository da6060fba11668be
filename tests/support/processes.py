"""Memory figures of a process."""

import os
import re
from itertools import pairwise
from pathlib import Path

_HEAP_BYTES = 64 << 20
"""glibc reserves so much for each heap of a thread, at an address that it divides, and opens it from its start on."""


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
