"""Using the embedded server: start it if nobody has, keep it as long as somebody uses it."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import asyncpg
import msgspec
import structlog

from service.db.embedded import keeper
from service.db.embedded.binaries import ENVIRONMENT, find_installation
from service.db.embedded.cluster import ensure_data, server_command
from service.db.embedded.errors import EmbeddedPostgresError
from service.db.embedded.home import SOCKET_NAME, Home, handed_over, make_private, open_home, trim_log
from service.db.embedded.locks import can_lock, try_lock
from service.db.embedded.server_user import find_server_user, own_name

START_SECONDS = 300.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.01
WATCH_SECONDS = 1.0

T = TypeVar("T")

_LOG = structlog.get_logger("service.db")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper is started with."""

    bin_dir: Path | None
    user: str
    durable: bool


@asynccontextmanager
async def embedded_postgres(
    data_dir: Path, *, bin_dir: Path | None = None, user: str = "", durable: bool = True
) -> AsyncGenerator[str]:
    """Use the private PostgreSQL in `data_dir`, which is started if it does not run and stopped after its last user.

    Args:
        data_dir: Geomill's data directory; the database lives in `postgres/` in it.
        bin_dir: where PostgreSQL's programs are; by default the newest that is found.
        user: who runs them when this process is root; by default `postgres`, else `nobody`.
        durable: False for data that need not survive the machine: tests.

    Yields:
        The address (DSN) of the database, valid in every process of this user while the block runs.

    Raises:
        EmbeddedPostgresError: it cannot run here; the message says why and what to do.
    """
    home = open_home(data_dir)
    options = Options(bin_dir=bin_dir, user=user, durable=durable)
    dsn = home.dsn(own_name())
    async with _used(home):
        await _wait_until_ready(home, options, dsn)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch, home, options)
            yield dsn
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _used(home: Home) -> AsyncIterator[None]:
    """Count as a user of the server; wait for its end if this was the last one."""
    lock = await _poll(lambda: try_lock(home.users_lock, exclusive=False))  # none while a keeper stops the server
    try:
        yield
    finally:
        os.close(lock)
        with anyio.move_on_after(STOP_SECONDS, shield=True):
            await _poll(lambda: _has_users(home) or can_lock(home.keeper_lock, exclusive=True) or None)


async def _poll(look: Callable[[], T | None]) -> T:
    """Look again and again until there is something."""
    while True:
        found = look()
        if found is not None:
            return found
        await anyio.sleep(POLL_SECONDS)


def _has_users(home: Home) -> bool:
    if can_lock(home.users_lock, exclusive=True):
        return False
    return can_lock(home.users_lock, exclusive=False)  # not while the keeper holds it, having found nobody


async def _wait_until_ready(home: Home, options: Options, dsn: str) -> None:
    started = False
    with anyio.move_on_after(START_SECONDS):
        while not await _accepts(dsn):
            if can_lock(home.keeper_lock, exclusive=True):
                if started:
                    raise EmbeddedPostgresError(f"The embedded database does not start: {_last_words(home)}")
                started = await anyio.to_thread.run_sync(_start_keeper, home, options)
            await anyio.sleep(POLL_SECONDS)
        return
    raise EmbeddedPostgresError(f"The embedded database takes too long to start; its log is {home.log}.")


async def _accepts(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn)
    except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
        return False
    await connection.close()
    return True


async def _watch(home: Home, options: Options) -> None:
    """Replace a keeper that was killed."""
    while True:
        await anyio.sleep(WATCH_SECONDS)
        if can_lock(home.keeper_lock, exclusive=True):
            _LOG.warning("database.keeper_lost")
            await anyio.to_thread.run_sync(_start_keeper, home, options)


def _start_keeper(home: Home, options: Options) -> bool:
    """Start the keeper unless somebody else has done so or is doing so; False then."""
    lock = try_lock(home.keeper_lock, exclusive=True)
    if lock is None:
        return False
    try:
        _prepare_and_spawn(home, options, lock)
    finally:
        os.close(lock)
    return True


def _prepare_and_spawn(home: Home, options: Options, lock: int) -> None:
    user = find_server_user(options.user)
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
    trim_log(home)
    argv = [sys.executable, "-I", "-S", keeper.__file__, msgspec.json.encode(task).decode()]
    with home.log.open("ab") as log:
        subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal reaches its whole foreground, but not other sessions
            pass_fds=(lock, *task["descriptors"]),
            check=True,
        )


def _last_words(home: Home) -> str:
    lines = home.log.read_text(encoding="utf-8", errors="replace").splitlines()
    fatal = [line for line in lines[-20:] if "FATAL" in line or "keeper: another" in line]
    return f"{fatal[-1] if fatal else 'no reason given'} (log: {home.log})"
