"""The directory of the embedded server, and access to it."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.server_user import ServerUser

SOCKET_NAME = ".s.PGSQL.5432"

_LONGEST_SOCKET_PATH = 80  # the kernel allows 107 bytes; PostgreSQL appends the rest
_SHORT_DIRECTORY = Path("/tmp")  # noqa: S108 - the same for every process, whatever its TMPDIR; the directory created there is checked


class Home(msgspec.Struct, frozen=True):
    """The directory `postgres/` in the data directory.

    It belongs to the user that started Geomill and is closed to others; the data and the socket's directory in it
    belong to the user that runs the server, who need not be able to reach them by name (see `handed_over`).
    """

    root: Path

    @property
    def users_lock(self) -> Path:
        """Held shared by every user of the server."""
        return self.root / "users.lock"

    @property
    def keeper_lock(self) -> Path:
        """Held by the keeper."""
        return self.root / "keeper.lock"

    @property
    def log(self) -> Path:
        """The log of the server and its keeper."""
        return self.root / "postgres.log"

    def data(self, major: int) -> Path:
        """Return the data directory of one major version; other versions cannot read it."""
        return self.root / str(major)

    @property
    def kept_majors(self) -> frozenset[int]:
        """The major versions with data."""
        return frozenset(
            int(path.parent.name) for path in self.root.glob("[0-9]*/PG_VERSION") if path.parent.name.isdigit()
        )

    @property
    def data_owner(self) -> int | None:
        """The user id that owns the data, if there are any."""
        owners = {self.data(major).stat().st_uid for major in self.kept_majors}
        return max(owners, default=None)

    @property
    def socket_directory(self) -> Path:
        """The directory of the socket: in the home, or in a short directory if the path is too long for an address."""
        directory = self.root / "run"
        if len(os.fsencode(directory / SOCKET_NAME)) <= _LONGEST_SOCKET_PATH:
            return directory
        return _SHORT_DIRECTORY / f"geomill-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:20]}"

    def dsn(self, role: str) -> str:
        """Return the DSN of the database for `role`."""
        parameters = urlencode({"host": str(self.socket_directory), "user": role}, quote_via=quote, safe="")
        return f"postgresql:///postgres?{parameters}"


def has_database(data_dir: Path) -> bool:
    """Return whether `data_dir` contains data, or a directory that only its owner can read."""
    home = Home(data_dir.resolve() / "postgres")
    try:
        return bool(home.kept_majors) or home.root.stat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False


def open_home(data_dir: Path) -> Home:
    """Open the home in `data_dir`; create it if it does not exist.

    Raises:
        EmbeddedPostgresError: it belongs to another user, or cannot be created.
    """
    home = Home(data_dir.resolve() / "postgres")
    try:
        home.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(home.root)
        for lock in (home.users_lock, home.keeper_lock):
            lock.touch(mode=0o600)
    except OSError as error:
        raise EmbeddedPostgresError(
            f"The database's directory {home.root} cannot be used ({error.strerror}). "
            "Make it writable, or name another data directory in GEOMILL_DATA_DIR."
        ) from error
    return home


def _check_owner(root: Path) -> None:
    owner = root.stat().st_uid
    if owner != os.geteuid():
        raise EmbeddedPostgresError(
            f"The database in {root} belongs to user id {owner}, and this is user id {os.geteuid()}. "
            "Run as that user, or with another GEOMILL_DATA_DIR."
        )


def make_private(directory: Path, user: ServerUser) -> None:
    """Create `directory` with access only for `user` (and root), unless it exists.

    Raises:
        EmbeddedPostgresError: another file or directory has the name, perhaps created by another user.
    """
    if not directory.is_symlink() and not directory.exists():
        directory.mkdir(mode=0o700)
        os.chown(directory, user.uid, user.gid)
    status = directory.lstat()
    if not directory.is_dir() or directory.is_symlink() or (status.st_uid, status.st_mode & 0o777) != (user.uid, 0o700):
        raise EmbeddedPostgresError(f"{directory} must be a directory of user {user.name} with mode 0700; remove it.")


class Handle(NamedTuple):
    """The path under which a program can use a directory, and the descriptors that it must inherit."""

    name: str
    descriptors: tuple[int, ...]


@contextmanager
def handed_over(directory: Path, user: ServerUser) -> Iterator[Handle]:
    """Return a path to `directory` that `user` can use even below a directory that it cannot enter, such as /root.

    An open descriptor gives access without permissions on the parent directories, so no home directory need be opened.
    """
    if not user.switched or not _DESCRIPTORS.is_dir():
        yield Handle(str(directory), ())
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Handle(str(_DESCRIPTORS / str(descriptor)), (descriptor,))
    finally:
        os.close(descriptor)


_DESCRIPTORS = Path("/proc/self/fd")
