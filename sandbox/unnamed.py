"""Files that a run holds without a directory entry: deleted or replaced by a rename while open or mapped.

They are counted through the host's /proc, which the keeper opens before the spawner enters its own namespaces, so it
does not matter whether a namespace may mount /proc. A process has a different id there, which can be read through a
descriptor of the process. A run holds only what its one process holds, because it can neither create processes nor
reach others.
"""

import io
import mmap
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final, NoReturn

from sandbox import syscalls
from sandbox.command import MIB, Limits
from sandbox.isolation.user import become
from sandbox.quota import held_bytes
from sandbox.report import Guard

_DELETED: Final = b" (deleted)"
_INODE: Final = 4
_PATH: Final = 5
# A converter has some eight hundred mappings of a hundred bytes each. Reading very many would take too long.
_MOST_MAPPINGS_BYTES: Final = 2 * MIB


def open_processes() -> int | None:
    """A descriptor of the host's /proc, or None where there is none."""
    with suppress(OSError):
        return os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return None


class UnnamedFiles:
    """Counts the unnamed files of runs below `roots`."""

    name = "count of unnamed files"
    stops = "holding more than allowed in files that were deleted while open or mapped"
    guards: frozenset[Guard] = frozenset()

    def __init__(self, processes: int | None, roots: Sequence[str], user: int | None) -> None:
        self._processes = processes
        # A deleted file elsewhere is a library replaced by an update of the host.
        self._roots = tuple(f"{path}/".encode() for root in roots for path in (root, os.path.realpath(root)))
        self._home = roots[0]
        self._user = user

    def probe(self) -> None:
        """Check that deleted files of a process like a run are counted, whether open or mapped.

        Raises:
            OSError: they are not, or /proc cannot be read.
        """
        ready, done = os.pipe()
        holder = os.fork()
        if holder == 0:
            self._hold(done)
        os.close(done)
        try:
            os.read(ready, 1)
            found = list(self.sizes(holder, Limits()))
        finally:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        # One mapped and one open file, or more if the service's own output goes to deleted files.
        if {size == Limits().file_bytes for size in found} != {True, False}:
            raise OSError("a deleted file was not seen")

    def _hold(self, ready: int) -> NoReturn:
        try:
            with ExitStack() as files:
                opened, mapped = (files.enter_context(tempfile.TemporaryFile(dir=self._home)) for _ in range(2))
                for file in (opened, mapped):
                    file.write(bytes(mmap.PAGESIZE))
                    file.flush()
                # Python's own mapping keeps the file open.
                syscalls.named("mmap", None, mmap.PAGESIZE, mmap.PROT_READ, mmap.MAP_SHARED, mapped.fileno(), 0)
                mapped.close()
                if self._user is not None:
                    become(self._user)
                    # An executed program can be inspected; so can a server's child, by a spawner with rights.
                    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
                syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
                os.write(ready, b"x")
                while True:
                    signal.pause()
        finally:
            os._exit(1)

    def sizes(self, pid: int, limits: Limits) -> Iterator[int]:
        """The bytes of each unnamed file of a child of this process; none for a child that has ended.

        The size of a file that is only mapped is unknown; it counts as the largest file that `limits` allow.

        Raises:
            OSError: they cannot be counted.
        """
        if self._processes is None:
            raise FileNotFoundError("there is no /proc")
        try:
            yield from self._sizes(pid, self._processes, limits)
        except OSError:
            if self._has_memory(pid):
                raise

    def _sizes(self, pid: int, processes: int, limits: Limits) -> Iterator[int]:
        with _directory(f"{self._number(pid)}", processes) as process:
            open_inodes = set()
            for status in _open_files(process):
                if status.st_nlink == 0:
                    open_inodes.add(status.st_ino)
                    yield held_bytes(status)
            for _ in self._mapped(process) - open_inodes:
                yield limits.file_bytes

    def _has_memory(self, pid: int) -> bool:
        """Whether a process has not begun to end; ending releases its memory first, then closes its files."""
        with suppress(FileNotFoundError, ProcessLookupError):
            return not _read(f"{self._number(pid)}/statm", self._processes).startswith(b"0 ")
        return False

    def _number(self, pid: int) -> int:
        """The process's id in the host's /proc."""
        descriptor = os.pidfd_open(pid)
        try:
            for line in _read(f"self/fdinfo/{descriptor}", self._processes).splitlines():
                if line.startswith(b"Pid:"):
                    return int(line.split()[1])
        finally:
            os.close(descriptor)
        raise ProcessLookupError("no id in /proc")

    def _mapped(self, process: int) -> set[int]:
        mappings = _read("maps", process)
        if _DELETED not in mappings:
            return set()
        fields = (line.split(maxsplit=_PATH) for line in mappings.splitlines() if line.endswith(_DELETED))
        return {int(field[_INODE]) for field in fields if field[_PATH].startswith(self._roots)}


@contextmanager
def _directory(path: str, below: int) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=below)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_files(process: int) -> Iterator[os.stat_result]:
    with _directory("fd", process) as descriptors:
        for name in os.listdir(descriptors):  # noqa: PTH208 - a descriptor has no path
            with suppress(FileNotFoundError):
                yield os.stat(name, dir_fd=descriptors)


def _read(path: str, below: int | None) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=below)
    with io.FileIO(descriptor) as file:
        read = b""
        while more := file.read(MIB):
            read += more
            if len(read) > _MOST_MAPPINGS_BYTES:
                raise OSError("too many mappings to look through")
        return read
