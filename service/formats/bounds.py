"""Bounds on the unpacked size of an upload, for every kind of packing."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from service.errors import Rejection
from service.formats.opened import created
from service.permit import go_on

MIB = 1 << 20


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a ZIP or .gz may contain. The ratio applies once more than `ratio_from_bytes` are unpacked."""

    members: int = 5_000
    unpacked_bytes: int = 1024 * MIB
    ratio: int = 200
    ratio_from_bytes: int = 64 * MIB
    contents_bytes: int = 4 * MIB
    """The largest table of contents of a ZIP that is parsed: more than that of any honest one."""
    in_steps: bool = False
    """Whether only what unpacks in small steps is unpacked: bzip2 unpacks 900 kB before it returns any of them."""
    read_through_bytes: int | None = None
    """How much text is read through, of all documents together."""

    def most_of(self, size_bytes: int) -> int:
        """To how much an upload of this size may unpack."""
        return min(self.unpacked_bytes, max(self.ratio_from_bytes, self.ratio * size_bytes))


class TooMuch(Rejection):
    """An upload contains more than its bounds allow."""


class MuchToRead(TooMuch):
    """Its text is longer than what is to be read through."""


class Unpacked:
    """Counts what has been unpacked of one upload; messages call it `kind`."""

    def __init__(self, kind: str, size_bytes: int, bounds: Bounds) -> None:
        self._kind = kind
        self._size_bytes = size_bytes
        self._bounds = bounds
        self._unpacked_bytes = 0

    def count(self, size_bytes: int) -> None:
        """Count `size_bytes` more.

        Raises:
            TooMuch: that is more than the bounds allow.
            OutOfTime, Withdrawn: see `permit.go_on`.
        """
        go_on()  # a little that is read may unpack to a lot
        self._unpacked_bytes += size_bytes
        if self._unpacked_bytes > self._bounds.unpacked_bytes:
            limit = self._bounds.unpacked_bytes // MIB
            raise TooMuch(f"The {self._kind} unpacks to more than {limit} MiB. Split the data into smaller files.")
        too_dense = self._unpacked_bytes > self._bounds.ratio * max(self._size_bytes, 1)
        if too_dense and self._unpacked_bytes > self._bounds.ratio_from_bytes:
            raise TooMuch(
                f"The {self._kind} unpacks to more than {self._bounds.ratio} times its size and was not read further. "
                "Send it unpacked, or in a ZIP without compression; split it if it is too large for that."
            )

    def write(self, pieces: Iterable[bytes], target: Path) -> None:
        """Write `pieces` to the new file `target`, and count them.

        Raises:
            OSError: there is no room for them.
            TooMuch, OutOfTime, Withdrawn: as `count`.
        """
        with created(target) as file:
            for piece in pieces:
                self.count(len(piece))
                file.write(piece)
