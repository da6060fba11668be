"""This process's heap: what a busy moment needed is given back when the moment has passed.

Python gets everything above half a kilobyte from the C library: chunks of uploads, buffers of packing, tables. glibc
lets each thread take that from a heap of its own, up to eight for each core, and gives the system only what is free at
a heap's end. So every thread that has ever packed a result keeps some megabytes for the next time, and one small object
that lives on keeps tens of megabytes below it. That is no leak, but memory climbs as long as threads come and go.

Other C libraries have neither habit nor these functions, and nothing is done there.
"""

import ctypes

import anyio

EVERY_SECONDS = 10.0
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_libc = ctypes.CDLL(None)
_set_option = getattr(_libc, "mallopt", None)
_trim = getattr(_libc, "malloc_trim", None)


def share_one_heap() -> None:
    """Let all threads that begin from now on use one heap; they wait for the interpreter's lock anyway."""
    if _set_option is not None:
        _set_option(_ARENA_MAX, 1)


def give_back() -> None:
    """Give the system every page that is free: a quarter of a millisecond's work if there is little, 5 ms for 50 MB."""
    if _trim is not None:
        _trim(0)


async def stay_small() -> None:
    """Give back now, and every ten seconds for ever."""
    while True:
        give_back()
        await anyio.sleep(EVERY_SECONDS)
