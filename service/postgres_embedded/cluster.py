"""Creation of the data directory, and the command line of a server on it."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

from service.postgres_embedded.binaries import ENVIRONMENT, Installation
from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.home import handed_over, make_private
from service.postgres_embedded.server_user import ServerUser

SETTINGS = {
    "listen_addresses": "",  # access only through the socket
    "unix_socket_permissions": "0700",
    "max_connections": "300",  # 32 serving processes with 8 connections each, and the commands of the CLI
    "shared_buffers": "64MB",  # the metering tables of a small installation fit many times over
    "max_wal_size": "256MB",
    "synchronous_commit": "on",  # responses to clients are durable; statements that need not wait override this
    "dynamic_shared_memory_type": "mmap",  # files in the data directory, so that SIGKILL leaves nothing elsewhere
    "jit": "off",  # compiling takes longer than any of our statements runs
    "log_checkpoints": "off",
    "log_timezone": "UTC",
    "timezone": "UTC",
    "cluster_name": "geomill",  # appears in the list of processes
}
NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}
"""For data that need not survive a power failure: tests."""


def ensure_data(
    installation: Installation, data: Path, user: ServerUser, *, role: str, durable: bool, lock: int
) -> None:
    """Create the data directory `data` atomically, unless it exists.

    Args:
        installation: the programs.
        data: the directory; a sibling with the suffix `.new` is used until it is complete.
        user: its future owner.
        role: the superuser of the new database.
        durable: whether to sync to disk.
        lock: a descriptor that initdb inherits, so that the lock is held for as long as initdb runs.

    Raises:
        EmbeddedPostgresError: initdb failed.
    """
    if data.exists():
        return
    new = data.with_name(f"{data.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # left behind by a killed start
    make_private(new, user)
    options = _INITDB if durable else (*_INITDB, "--no-sync")
    with handed_over(new, user) as handle:
        _run_initdb(
            [str(installation.bin_dir / "initdb"), "-D", handle.name, "-U", role, *options],
            user,
            (lock, *handle.descriptors),
        )
    new.rename(data)


_INITDB = (
    "--auth-local=peer",  # authenticates the operating system's user, in addition to the directory's mode
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale=C",  # byte order: the same on every host, and no library upgrade can corrupt an index
    "--data-checksums",
)


def _run_initdb(argv: list[str], user: ServerUser, descriptors: tuple[int, ...]) -> None:
    answer = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env=ENVIRONMENT,
        start_new_session=True,  # we handle Ctrl-C
        pass_fds=descriptors,
        **user.identity,
    )
    if answer.returncode != 0:
        full = "Free some space, or name another directory in GEOMILL_DATA_DIR." if _is_full(answer.stderr) else ""
        message = f"The embedded database could not be set up ({_reason(answer.stderr)}). {full}"
        raise EmbeddedPostgresError(message.rstrip())


def _reason(complaints: str) -> str:
    """Return the line that describes the error, rather than the cleanup after it."""
    lines = complaints.splitlines()
    found = (line.partition(mark)[2].strip() for line in lines for mark in ("error:", "FATAL:") if mark in line)
    return next(found, " ".join(lines) or "no reason given")


def _is_full(complaints: str) -> bool:
    return os.strerror(errno.ENOSPC) in complaints or "Check free disk space" in complaints


def server_command(installation: Installation, data: str, socket_directory: str, *, durable: bool) -> list[str]:
    """Return the command that starts the server on `data` with its socket in `socket_directory`."""
    settings = SETTINGS | {"unix_socket_directories": socket_directory} | ({} if durable else NOT_DURABLE)
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return [str(installation.bin_dir / "postgres"), "-D", data, *options]
