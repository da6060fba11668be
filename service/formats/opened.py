"""Opens uploads. A thread that reads a large one can be stopped: each reading asks whether the work may go on."""

from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from service.permit import go_on, has_permit

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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


def unbuffered(path: Path) -> FileIO:
    """The file at `path`, to be read in pieces. Blocking; work without a permit, on small files, has nobody to ask."""
    return UploadFile(path) if has_permit() else FileIO(path)


def opened(path: Path) -> BufferedReader:
    """The file at `path`, to be read. Blocking."""
    return BufferedReader(unbuffered(path), BUFFER)
