"""A memory control group per slot: counts what the address-space limit does not, and tells who was killed for memory.

Only the keeper can make the groups, before the spawner gives up its rights; the spawner keeps descriptors of their
files, and a run joins by one write. For both versions of control groups, where this process may make any.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sandbox.isolation.jail import Jail
from sandbox.isolation.steps import Steps
from sandbox.report import Guard

NAME: Final = "memory group"
_PREFIX: Final = "sandbox-"
_REMOVAL_ATTEMPTS: Final = 100
_REMOVAL_PAUSE_SECONDS: Final = 0.01
_LOCK_ATTEMPTS: Final = 200
_LOCK_PAUSE_SECONDS: Final = 0.01
_MOUNT: Final = Path("/sys/fs/cgroup")
# (where to join, limit, file with the line "oom_kill N"), by version. A run has one thread when it joins. To move that
# alone takes the kernel 50 microseconds; before it moves a process it waits until no processor is about to create or
# end one: often 10 ms. Version 2 moves no thread without its process.
_FILES: Final = (
    ("cgroup.procs", "memory.max", "memory.events"),
    ("tasks", "memory.limit_in_bytes", "memory.oom_control"),
)


class Group:
    """The group of one slot, through descriptors that outlive the view of its files."""

    def __init__(self, path: Path) -> None:
        join, limit, events = next(names for names in _FILES if (path / names[1]).exists())
        self.join = os.open(path / join, os.O_WRONLY | os.O_CLOEXEC)
        self._limit = os.open(path / limit, os.O_WRONLY | os.O_CLOEXEC)
        self._events = os.open(path / events, os.O_RDONLY | os.O_CLOEXEC)

    def allow(self, memory_bytes: int) -> None:
        """Set what its processes may use together."""
        # Refused while more than that is in use: the cache of the last run, which the kernel takes back when it must.
        with suppress(OSError):
            os.pwrite(self._limit, str(memory_bytes).encode(), 0)

    def kills(self) -> int:
        """How many processes were killed in it for memory, ever."""
        fields = os.pread(self._events, 4096, 0).split()
        return int(fields[fields.index(b"oom_kill") + 1]) if b"oom_kill" in fields else 0


class Groups:
    """The groups of one keeper."""

    def __init__(self) -> None:
        self._made: list[Path] = []
        self._locked: list[int] = []

    def make(self, slots: int) -> tuple[Group, ...]:
        """A group per slot.

        Raises:
            OSError: this process may not make any, or they do not count memory.
        """
        trouble = OSError("no control group for memory is mounted")
        for parent in _parents():
            try:
                return self._make_below(parent, slots)
            except OSError as error:
                self.remove()
                trouble = error
        raise trouble

    def _make_below(self, parent: Path, slots: int) -> tuple[Group, ...]:
        with _locked(parent):
            _remove_abandoned(parent)
            _pass_on(parent)
            # A process id alone is not unique: keepers of several PID namespaces may share this parent.
            top = parent / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
            for path in (top, *(top / str(slot) for slot in range(slots))):
                path.mkdir()
                self._made.append(path)
                if path == top:
                    self._locked.append(_lock(top))
                    _pass_on(top)
        if not any((self._made[-1] / limit).exists() for _, limit, _ in _FILES):
            raise OSError("the memory controller is not delegated to this service")
        return tuple(Group(path) for path in self._made[1:])

    def remove(self) -> None:
        """Remove them; to be done when nothing runs in them."""
        while self._made:
            _remove(self._made.pop())
        while self._locked:
            os.close(self._locked.pop())


def _remove(group: Path) -> None:
    """Remove a group; one whose last process has just been killed stays busy for a moment."""
    for _ in range(_REMOVAL_ATTEMPTS):
        try:
            group.rmdir()
        except OSError:
            time.sleep(_REMOVAL_PAUSE_SECONDS)
        else:
            return


def _parents() -> Iterator[Path]:
    """Where groups may be made: below the own group, or beside it, if that is how the service manager delegates."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in {"memory", ""}:
            own = _MOUNT / controllers / path.lstrip("/")
            yield from (own, own.parent) if path != "/" else (own,)


def _pass_on(group: Path) -> None:
    """In version 2 a group counts memory for its children only when it is told to."""
    with suppress(OSError):
        (group / "cgroup.subtree_control").write_text("+memory", encoding="utf-8")


def _lock(directory: Path) -> int:
    """Lock a directory until the returned descriptor, and every copy that a child has inherited, is closed.

    Raises:
        BlockingIOError: somebody else holds the lock.
        OSError: it cannot be opened.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other keepers from making or removing groups here meanwhile.

    Raises:
        OSError: somebody else holds the lock for longer than a keeper does.
    """
    for _ in range(_LOCK_ATTEMPTS):
        with suppress(BlockingIOError):
            descriptor = _lock(directory)
            break
        time.sleep(_LOCK_PAUSE_SECONDS)
    else:
        raise OSError(f"another process keeps {directory} locked")
    try:
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(parent: Path) -> None:
    """Remove the groups of keepers that were killed: those that no process has locked.

    A keeper is not looked for by its process id: one in another PID namespace, as in a second container, has another id
    here or none, and would lose the groups that its next runs are to join.
    """
    for path in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            lock = _lock(path)
            try:
                for group in (*path.glob("*/"), path):
                    group.rmdir()
            finally:
                os.close(lock)


class MemoryGroup:
    """Joins the group of its slot."""

    name = NAME
    stops = "using more memory than allowed by several processes or files in memory"
    guards: frozenset[Guard] = frozenset()

    def __init__(self, groups: Sequence[Group], reason: str) -> None:
        self._groups = groups
        self._reason = reason

    def probe(self) -> None:
        """Join one."""
        if not self._groups:
            raise OSError(self._reason)
        os.write(self._groups[0].join, b"0")

    def steps(self, jail: Jail) -> bytes:
        """Join."""
        steps = Steps(self.name)
        steps.call("write", jail.as_argument(jail.group), b"0", 1)
        return steps.packed()
