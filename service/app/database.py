"""The database: the configured one, or the embedded one."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import structlog

from service.db.migrate import Schema, migrate, require_schema
from service.db.pool import Database, open_pool
from service.metering.ledger import publish_plans
from service.postgres_embedded import EmbeddedPostgresError, embedded_postgres, has_database
from service.settings import Settings
from service.telemetry import events
from service.telemetry.metrics import observe_statement

_log = structlog.get_logger()


def _log_schema(schema: Schema) -> None:
    if schema.applied:
        _log.info(events.DATABASE_MIGRATED, migrations=len(schema.applied), last=schema.applied[-1])
    if schema.newer:
        _log.info(events.DATABASE_NEWER, migrations=schema.newer)


@asynccontextmanager
async def make_database(settings: Settings, tell: Callable[[Schema], None] = _log_schema) -> AsyncIterator[Database]:
    """Open the configured database, or the embedded one, made if need be, with its schema and plans up to date.

    If a newer version has migrated it, its plans are that version's. `tell` is called once with what the migration did.

    Raises:
        EmbeddedPostgresError, MigrationError, DatabaseUnavailable: there is no database to work with.
    """
    async with _reach_database(settings) as dsn:
        schema = await migrate(dsn)
        tell(schema)
        async with open_pool(dsn, watch=observe_statement) as database:
            if not schema.newer:
                await publish_plans(database)
            yield database


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Open a database that `make_database` has made with this version, and change nothing of it.

    Raises:
        EmbeddedPostgresError, MigrationError: there is none, or it is another version's.
    """
    if not settings.database_url and not has_database(settings.data_path):
        raise EmbeddedPostgresError(
            f"There is no database in {settings.data_path}. Name the service's data directory in GEOMILL_DATA_DIR or "
            "its database in GEOMILL_DATABASE_URL; only `geomill serve` and `geomill migrate` make a new one."
        )
    async with _reach_database(settings) as dsn:
        await require_schema(dsn)
        async with open_pool(dsn, watch=observe_statement) as database:
            yield database


def _reach_database(settings: Settings) -> AbstractAsyncContextManager[str]:
    if settings.database_url:
        return nullcontext(settings.database_url)
    return embedded_postgres(
        settings.data_path,
        bin_dir=Path(settings.postgres_bin_dir) if settings.postgres_bin_dir else None,
        user=settings.postgres_user,
    )
