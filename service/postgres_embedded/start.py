"""Start of a keeper: chooses user and programs, creates the data, hands over."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec

from service.postgres_embedded import keeper
from service.postgres_embedded.binaries import ENVIRONMENT, find_installation
from service.postgres_embedded.cluster import ensure_data, server_command
from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.home import SOCKET_NAME, Home, handed_over, make_private
from service.postgres_embedded.locks import try_lock
from service.postgres_embedded.server_user import find_server_user, own_name

_LOG_BYTES = 8 << 20


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a keeper."""

    bin_dir: Path | None
    user: str
    durable: bool


def installed_major(bin_dir: Path | None, user: str) -> int:
    """Return the major version of PostgreSQL for a new database.

    Raises:
        EmbeddedPostgresError: nothing suitable is installed.
    """
    return find_installation(find_server_user(user), (), bin_dir).major


def start_keeper(home: Home, options: Options) -> bool:
    """Start the keeper; create the data first if there is none.

    Returns:
        False if another process has started one or is doing so.

    Raises:
        EmbeddedPostgresError: something is missing on this host.
    """
    lock = try_lock(home.keeper_lock, exclusive=True)
    if lock is None:
        return False
    try:
        _prepare_and_spawn(home, options, lock)
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedPostgresError(f"The embedded database could not be started: {error}") from error
    finally:
        os.close(lock)
    return True


def _prepare_and_spawn(home: Home, options: Options, lock: int) -> None:
    user = find_server_user(options.user, home.data_owner)
    installation = find_installation(user, home.kept_majors, options.bin_dir)
    data = home.data(installation.major)
    make_private(home.socket_directory, user)
    ensure_data(installation, data, user, role=own_name(), durable=options.durable, lock=lock)
    with ExitStack() as stack:
        data_handle = stack.enter_context(handed_over(data, user))
        socket_handle = stack.enter_context(handed_over(home.socket_directory, user))
        task = keeper.Task(
            command=server_command(installation, data_handle.name, socket_handle.name, durable=options.durable),
            environment=ENVIRONMENT,
            identity={**user.identity},
            descriptors=[*data_handle.descriptors, *socket_handle.descriptors],
            users_lock=str(home.users_lock),
            data=str(data),
            socket=str(home.socket_directory / SOCKET_NAME),
        )
        _spawn(home, task, lock)


def _spawn(home: Home, task: keeper.Task, lock: int) -> None:
    _trim_log(home.log)
    argv = [sys.executable, "-I", "-S", keeper.__file__, msgspec.json.encode(task).decode()]
    with home.log.open("ab") as log:
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal reaches all foreground processes, but no other session
            pass_fds=(lock, *task["descriptors"]),
            check=True,
        )


def _trim_log(log: Path) -> None:
    """Rename a log that has become too long, replacing the previous one."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        log.replace(log.with_suffix(".log.old"))
