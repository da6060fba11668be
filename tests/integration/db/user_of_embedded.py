"""A process that uses the embedded server and that tests may kill: `python -m … DATA_DIRECTORY`.

It prints the server's address when the database answers, then runs each line of its input as a statement and prints
the first value or the error. It ends, in order, at the end of its input. Like a gateway that drains, it does not let
itself be interrupted.
"""

import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import structlog

from service.db.pool import Database, open_pool
from service.errors import DatabaseUnavailable
from service.postgres_embedded import EmbeddedPostgresError, embedded_postgres


def _say(answer: object) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


async def _answer(database: Database, statement: str) -> object:
    try:
        async with database.connection() as connection:
            return await connection.fetchval(statement)
    except DatabaseUnavailable:
        return "unavailable"


async def _main(data_dir: Path) -> None:
    async with embedded_postgres(data_dir, durable=False) as dsn, open_pool(dsn) as database:
        _say(dsn)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            _say(await _answer(database, line))


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    try:
        anyio.run(_main, Path(sys.argv[1]))
    except EmbeddedPostgresError as error:
        sys.exit(str(error))
