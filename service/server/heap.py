"""Returns heap memory to the system after peaks of load, and treats what stays forever as such.

Python allocates everything above half a kilobyte with the C library: upload chunks, compression buffers, tables. glibc
gives threads separate heaps, up to eight per core, and returns memory to the system only from a heap's end. Every
thread that has packed a result therefore keeps some megabytes, and one small surviving object can pin tens of megabytes
below it. This is not a leak, but memory grows as long as threads come and go.

Other C libraries have neither this behavior nor these functions, and this module does nothing with them.
"""

import ctypes
import gc
from collections.abc import Iterator
from pathlib import Path

import anyio

EVERY_SECONDS = 10.0
HUGE_PAGE_BYTES = 2 << 20
COLLAPSE = 25  # MADV_COLLAPSE of linux/mman.h, since Linux 6.1; earlier systems refuse it
_MAPS = Path("/proc/self/maps")
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_libc = ctypes.CDLL(None)
_set_option = getattr(_libc, "mallopt", None)
_trim = getattr(_libc, "malloc_trim", None)


def share_one_heap() -> None:
    """Make all threads started from now on share one heap; they wait for the interpreter's lock anyway."""
    if _set_option is not None:
        _set_option(_ARENA_MAX, 1)


def settle() -> None:
    """Treat the objects that exist now, those of a start, as what lives as long as the process.

    They are exempt from garbage collection. Where the system can, they move into huge pages: a request uses thousands
    of them, and translating their addresses in pages of four kibibytes takes a twentieth of a small one's time.
    """
    gc.collect()
    gc.freeze()
    for start, end in _writable_memory():
        first, last = -(-start // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end // HUGE_PAGE_BYTES * HUGE_PAGE_BYTES
        if first < last:
            _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), COLLAPSE)


def _writable_memory() -> Iterator[tuple[int, int]]:
    """The address ranges that belong to no file; none where the system does not tell."""
    for line in _MAPS.read_text().splitlines() if _MAPS.exists() else ():
        addresses, rights, _, _, _, *name = line.split()
        if rights == "rw-p" and name in ([], ["[heap]"]):
            start, _, end = addresses.partition("-")
            yield int(start, 16), int(end, 16)


def give_back() -> None:
    """Return all free pages to the system: takes a quarter of a millisecond for little memory, 5 ms for 50 MB."""
    if _trim is not None:
        _trim(0)


async def stay_small() -> None:
    """Return memory now and every ten seconds, forever."""
    while True:
        give_back()
        await anyio.sleep(EVERY_SECONDS)
