"""Opens uploads, and files made of them.

A thread that reads a large one can be stopped: each reading asks whether the work may go on, and each writing whether
there is room.
"""

from io import BufferedReader, BufferedWriter, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from service.permit import go_on, has_permit, occupy

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

BUFFER = 64 << 10


class UploadFile(FileIO):
    """A file that is read in pieces, without a buffer."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes; raises what `permit.go_on` raises."""
        go_on()
        return super().read(size)

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill the buffer as far as possible; raises what `permit.go_on` raises."""
        go_on()
        return super().readinto(buffer)


class MadeFile(FileIO):
    """A new file whose size counts, without a buffer."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write some of the data; raises what `permit.occupy` raises."""
        written = super().write(data)
        occupy(written)
        return written


def unbuffered(path: Path) -> FileIO:
    """The file at `path`, to be read in pieces. Blocking; work without a permit, on small files, has nobody to ask."""
    return UploadFile(path) if has_permit() else FileIO(path)


def opened(path: Path) -> BufferedReader:
    """The file at `path`, to be read. Blocking."""
    return BufferedReader(unbuffered(path), BUFFER)


def created(path: Path) -> BufferedWriter:
    """The new file at `path`, to be written; its directory is created if needed. Blocking."""
    path.parent.mkdir(exist_ok=True)
    return BufferedWriter(MadeFile(path, "x") if has_permit() else FileIO(path, "x"), BUFFER)


def removed(path: Path) -> None:
    """Delete a file that was `created`. Blocking."""
    occupy(-path.stat().st_size)
    path.unlink()
