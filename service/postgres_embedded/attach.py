"""Use of the embedded server: starts it if it is not running, and keeps it running while it has users."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import asyncpg
import structlog

from service.cadence import until_next
from service.postgres_embedded.errors import EmbeddedPostgresError
from service.postgres_embedded.home import Home, open_home
from service.postgres_embedded.locks import can_lock, try_lock
from service.postgres_embedded.server_user import own_name
from service.postgres_embedded.start import Options, start_keeper

START_SECONDS = 300.0  # recovery may take long
STOP_SECONDS = 30.0
POLL_SECONDS = 0.01
WATCH = timedelta(seconds=1)

T = TypeVar("T")

_LOG = structlog.get_logger()


@asynccontextmanager
async def embedded_postgres(
    data_dir: Path, *, bin_dir: Path | None = None, user: str = "", durable: bool = True
) -> AsyncGenerator[str]:
    """Use the private PostgreSQL in `data_dir`; it is started if necessary, and stopped after its last user.

    Args:
        data_dir: Geomill's data directory; the database lives in `postgres/` in it.
        bin_dir: the directory of PostgreSQL's programs; default: the newest version found.
        user: the user that runs them if this process is root; default: the owner of the data, `postgres` or `nobody`.
        durable: False for data that need not survive a power failure: tests.

    Yields:
        The DSN of the database, valid in every process of this user while the block runs.

    Raises:
        EmbeddedPostgresError: it cannot run here; the message says why and what to do.
    """
    home = open_home(data_dir)
    options = Options(bin_dir=bin_dir, user=user, durable=durable)
    dsn = home.dsn(own_name())
    async with _used(home):
        await _wait_until_ready(home, options, dsn)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_watch, home, options)
            try:
                yield dsn
            except Exception as error:  # noqa: BLE001 - the task group would wrap it
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure


@asynccontextmanager
async def _used(home: Home) -> AsyncIterator[None]:
    """Register as a user of the server; wait for its end if this was the last user."""
    lock = await _poll(
        lambda: try_lock(home.users_lock, exclusive=False)
    )  # unavailable while a keeper stops the server
    try:
        yield
    finally:
        os.close(lock)
        with anyio.move_on_after(STOP_SECONDS, shield=True):
            await _poll(lambda: _has_users(home) or can_lock(home.keeper_lock, exclusive=True) or None)


async def _poll(look: Callable[[], T | None]) -> T:
    """Poll until the result is not None."""
    while True:
        found = look()
        if found is not None:
            return found
        await anyio.sleep(POLL_SECONDS)


def _has_users(home: Home) -> bool:
    if can_lock(home.users_lock, exclusive=True):
        return False
    return can_lock(home.users_lock, exclusive=False)  # not while the keeper holds it, because there are no users


async def _wait_until_ready(home: Home, options: Options, dsn: str) -> None:
    """Wait for the server; start a keeper if there is none, but only once."""
    started = False
    with anyio.move_on_after(START_SECONDS):
        while not await _accepts(dsn, home):
            if can_lock(home.keeper_lock, exclusive=True):
                if started:
                    raise EmbeddedPostgresError(f"The embedded database does not start: {_last_log_line(home)}")
                started = await anyio.to_thread.run_sync(start_keeper, home, options)
            await anyio.sleep(POLL_SECONDS)
        return
    raise EmbeddedPostgresError(f"The embedded database takes too long to start. See its log: {home.log}")


async def _accepts(dsn: str, home: Home) -> bool:
    try:
        connection = await asyncpg.connect(dsn)
    except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
        return False
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise EmbeddedPostgresError(f"The database in {home.root} belongs to another user: {error}.") from error
    except asyncpg.DiskFullError as error:
        raise EmbeddedPostgresError(
            f"The database in {home.root} is on a full disk: {error}. Free some space."
        ) from error
    await connection.close()
    return True


async def _watch(home: Home, options: Options) -> None:
    """Replace killed keepers."""
    while True:
        await until_next(WATCH)
        try:
            if can_lock(home.keeper_lock, exclusive=True):
                _LOG.warning("database.keeper_lost")
                await anyio.to_thread.run_sync(start_keeper, home, options)
        except (EmbeddedPostgresError, OSError) as error:
            _LOG.warning("database.keeper_not_started", detail=str(error))


def _last_log_line(home: Home) -> str:
    """Return the last line of the log that is neither routine nor caused by our own attempts to connect."""
    lines = home.log.read_text(encoding="utf-8", errors="replace").splitlines()
    telling = [line for line in lines[-20:] if not any(routine in line for routine in _ROUTINE)]
    return f"{telling[-1] if telling else 'no reason given'} (log: {home.log})"


_ROUTINE = (" LOG: ", "FATAL:  the database system is ", "keeper: the server ended")
