"""Returns heap memory to the system after peaks of load, and spares the garbage collector what stays for ever.

Python allocates everything above half a kilobyte with the C library: upload chunks, compression buffers, tables. glibc
gives threads separate heaps, up to eight per core, and returns memory to the system only from a heap's end. Every
thread that has packed a result therefore keeps some megabytes, and one small surviving object can pin tens of megabytes
below it. This is not a leak, but memory grows as long as threads come and go.

Other C libraries have neither this behaviour nor these functions, and this module does nothing with them.
"""

import ctypes
import gc

import anyio

EVERY_SECONDS = 10.0
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_libc = ctypes.CDLL(None)
_set_option = getattr(_libc, "mallopt", None)
_trim = getattr(_libc, "malloc_trim", None)


def share_one_heap() -> None:
    """Make all threads started from now on share one heap; they wait for the interpreter's lock anyway."""
    if _set_option is not None:
        _set_option(_ARENA_MAX, 1)


def exempt_all() -> None:
    """Exempt the objects that exist now from garbage collection: those of a start live as long as the process."""
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Return all free pages to the system: takes a quarter of a millisecond for little memory, 5 ms for 50 MB."""
    if _trim is not None:
        _trim(0)


async def stay_small() -> None:
    """Return memory now and every ten seconds, forever."""
    while True:
        give_back()
        await anyio.sleep(EVERY_SECONDS)
