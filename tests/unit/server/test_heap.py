"""How much temporary memory the heap keeps, in separate processes, since a heap's settings are permanent."""

import ctypes
import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from service.server.heap import COLLAPSE, HUGE_PAGE_BYTES

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library than glibc")

THREADS = """
import threading
from service.server.heap import share_one_heap
{settle}
together = threading.Barrier(4)

def work():
    kept = [bytes(50_000) for _ in range(20)]
    together.wait()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
from tests.support.processes import heaps_of_threads
print(heaps_of_threads("self"))
"""

PEAK = """
from service.server.heap import give_back, share_one_heap
from tests.support.processes import resident_bytes
share_one_heap()
peak = [bytes(20_000) for _ in range(2_000)]
lasting = bytes(20_000)
before = resident_bytes("self")
del peak
kept = resident_bytes("self")
give_back()
print(before - kept, before - resident_bytes("self"))
"""

LASTING = """
import re
from pathlib import Path
from service.server.heap import settle
lasting = [str(number) for number in range(400_000)]
settle()
print(*re.findall(r"AnonHugePages: +([0-9]+) kB", Path("/proc/self/smaps_rollup").read_text()), len(set(lasting)))
"""


def has_huge_pages() -> bool:
    """Whether this system moves memory into huge pages on request."""
    with mmap.mmap(-1, 4 * HUGE_PAGE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        area.write(bytes(len(area)))
        try:
            area.madvise(COLLAPSE)
        except OSError:
            return False
    return True


def _printed(program: str) -> list[int]:
    answer = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return [int(word) for word in answer.stdout.split()]


def test_threads_share_one_heap() -> None:
    """However many allocate, none gets an arena of its own, as each would by default."""
    assert _printed(THREADS.format(settle="")) != [0]
    assert _printed(THREADS.format(settle="share_one_heap()")) == [0]


def test_memory_below_what_lives_on_is_given_back() -> None:
    """Without it, the heap would keep 40 MB that were freed below a live object."""
    kept, given_back = _printed(PEAK)
    assert kept < 10_000_000
    assert given_back > 35_000_000


@pytest.mark.skipif(not has_huge_pages(), reason="a system without huge pages on request")
def test_what_lasts_moves_into_huge_pages() -> None:
    """The objects of a start, tens of megabytes, stay as they are; a system may lack free pages for a moment."""
    tries = (_printed(LASTING) for _ in range(5))
    kept = next((kept for huge_kib, kept in tries if huge_kib > 10_000), None)
    assert kept == 400_000
