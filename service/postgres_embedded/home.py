"""Where the embedded server keeps its things, and who may reach them."""

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

_LONGEST_SOCKET_PATH = 80  # of 107 bytes that the kernel takes, less what PostgreSQL appends
_SHORT_PLACE = Path("/tmp")  # noqa: S108 - the same for every process, whatever its TMPDIR; what is made there is checked


class Home(msgspec.Struct, frozen=True):
    """The directory `postgres/` in the data directory.

    It belongs to whoever started Geomill and is closed to others; the data and the socket's directory in it belong to
    the user that runs the server. That user need not be able to reach them by name (see `handed_over`).
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
        """What the server and its keeper had to say."""
        return self.root / "postgres.log"

    def data(self, major: int) -> Path:
        """The data of one major version; another version cannot read them."""
        return self.root / str(major)

    @property
    def kept_majors(self) -> frozenset[int]:
        """The major versions of which there are data."""
        return frozenset(
            int(path.parent.name) for path in self.root.glob("[0-9]*/PG_VERSION") if path.parent.name.isdigit()
        )

    @property
    def data_owner(self) -> int | None:
        """The user id to whom the data belong, if there are any."""
        owners = {self.data(major).stat().st_uid for major in self.kept_majors}
        return max(owners, default=None)

    @property
    def socket_directory(self) -> Path:
        """Where the server's socket is: in here, or in a short place when the path would not fit into an address."""
        directory = self.root / "run"
        if len(os.fsencode(directory / SOCKET_NAME)) <= _LONGEST_SOCKET_PATH:
            return directory
        return _SHORT_PLACE / f"geomill-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:20]}"

    def dsn(self, role: str, database: str = "postgres") -> str:
        """The address of `database` for `role`."""
        parameters = urlencode({"host": str(self.socket_directory), "user": role}, quote_via=quote, safe="")
        return f"postgresql:///{database}?{parameters}"


def has_database(data_dir: Path) -> bool:
    """Whether there are data in `data_dir`, or something that only its owner may look into."""
    home = Home(data_dir.resolve() / "postgres")
    try:
        return bool(home.kept_majors) or home.root.stat().st_uid != os.geteuid()
    except FileNotFoundError:
        return False


def open_home(data_dir: Path) -> Home:
    """Make the home in `data_dir` if there is none.

    Raises:
        EmbeddedPostgresError: it belongs to somebody else, or cannot be made.
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
    """Make `directory`, closed to everybody but `user` (and root), if it is not there.

    Raises:
        EmbeddedPostgresError: something else is there, perhaps put there by somebody else.
    """
    if not directory.is_symlink() and not directory.exists():
        directory.mkdir(mode=0o700)
        os.chown(directory, user.uid, user.gid)
    status = directory.lstat()
    if not directory.is_dir() or directory.is_symlink() or (status.st_uid, status.st_mode & 0o777) != (user.uid, 0o700):
        raise EmbeddedPostgresError(f"{directory} must be a directory of user {user.name} with mode 0700; remove it.")


class Handle(NamedTuple):
    """How a program is to call a directory, and the descriptors that it must inherit for that."""

    name: str
    descriptors: tuple[int, ...]


@contextmanager
def handed_over(directory: Path, user: ServerUser) -> Iterator[Handle]:
    """Name `directory` so that `user` can use it even below a directory that is closed to them, such as /root.

    An open descriptor leads there without asking anybody on the way; so nobody's home need be opened for the server.
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
