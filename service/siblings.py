"""What the serving processes of one service know of each other: a few numbers per process, in memory that they share.

Each process writes only its own row, and reads those of the others. A row counts while its process updates it, so a
process that was killed or suspended is ignored after `FRESH_SECONDS`, whatever it wrote last. The numbers are hints:
they may be a moment old, and correctness never depends on them.
"""

import mmap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FRESH_SECONDS: Final = 2.0
_BEATS, _BEAT_AT, _ACCEPTS, _CONNECTIONS, _IS_OPEN = range(5)
_NUMBERS_PER_ROW: Final = 8  # a cache line of eight bytes each
_NANOSECONDS: Final = 10**9
_TOLERATED_SHARE: Final = 8


class Board:
    """The rows of all processes, numbered from 1."""

    def __init__(self, numbers: memoryview, count: int) -> None:
        self._numbers = numbers
        self.count = count

    def read(self, number: int, column: int) -> int:
        """Return a number of a process's row."""
        value: int = self._numbers[(number - 1) * _NUMBERS_PER_ROW + column]
        return value

    def write(self, number: int, column: int, value: int) -> None:
        """Set a number of a process's row."""
        self._numbers[(number - 1) * _NUMBERS_PER_ROW + column] = value

    def beats(self, number: int) -> int:
        """Return how often a process has updated its row."""
        return self.read(number, _BEATS)

    def clear(self, number: int) -> None:
        """Empty the row of a process that has ended."""
        for column in range(_NUMBERS_PER_ROW):
            self.write(number, column, 0)


def open_board(path: Path, count: int) -> Board:
    """Open the board of `count` processes in the file at `path`, which is created if it does not exist."""
    size = count * _NUMBERS_PER_ROW * 8
    with path.open("a+b") as file:
        file.truncate(size)
        return Board(memoryview(mmap.mmap(file.fileno(), size)).cast("q"), count)


class Siblings:
    """The other processes, as seen by process `number`."""

    def __init__(self, board: Board, number: int) -> None:
        self._board = board
        self._number = number
        self._others = [other for other in range(1, board.count + 1) if other != number]

    @property
    def leads(self) -> bool:
        """Whether this process does what one process suffices for: no process with a lower number is alive."""
        return not any(other < self._number for other in self._alive())

    @property
    def another_accepts(self) -> bool:
        """Whether another process accepts work."""
        return any(self._board.read(other, _ACCEPTS) for other in self._alive())

    def beat(self, *, accepts: bool) -> None:
        """Show that this process is alive, and whether it accepts work."""
        beats = self._board.beats(self._number)
        self._board.write(self._number, _ACCEPTS, accepts)
        self._board.write(self._number, _BEAT_AT, time.monotonic_ns())
        self._board.write(self._number, _BEATS, beats + 1)

    def note_connections(self, count: int, *, is_open: bool) -> None:
        """Show the number of this process's connections, and whether it accepts further ones."""
        self._board.write(self._number, _CONNECTIONS, count)
        self._board.write(self._number, _IS_OPEN, is_open)

    def should_take_next(self, connections: int) -> bool:
        """Whether another process, which has fewer connections, should accept the next one."""
        if not self._others:
            return False
        counts = [self._board.read(o, _CONNECTIONS) for o in self._alive() if self._board.read(o, _IS_OPEN)]
        fewest = min(counts, default=connections)
        return connections > fewest + fewest // _TOLERATED_SHARE

    def _alive(self) -> Iterator[int]:
        oldest = time.monotonic_ns() - int(FRESH_SECONDS * _NANOSECONDS)
        return (other for other in self._others if self._board.read(other, _BEAT_AT) > oldest)


def no_siblings() -> Siblings:
    """Return the siblings of a process that serves alone."""
    return Siblings(Board(memoryview(bytearray(_NUMBERS_PER_ROW * 8)).cast("q"), 1), 1)
