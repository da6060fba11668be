"""The driver's errors that mean that the database is unavailable, and what callers get instead."""

import asyncpg
import structlog

from service.errors import DatabaseUnavailable

RETRY_AFTER_SECONDS = 5

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # the server is stopping or starting, or ended the statement
    asyncpg.InsufficientResourcesError,  # too many connections, out of memory, disk full
    asyncpg.TransactionRollbackError,  # a deadlock; behind a pooler, also an isolation that is stricter than ours
    asyncpg.LockNotAvailableError,  # the server's own limit on waiting for a lock
    asyncpg.ReadOnlySQLTransactionError,  # the server has become a standby
    TimeoutError,  # the statement exceeded its time limit
)
"""Errors during statements that mean that the database is unavailable."""

REFUSED = (
    *LOST,
    OSError,  # nothing listens, or the host is unreachable
    asyncpg.TargetServerAttributeNotMatched,  # the host is a standby, and another one may be the primary
    asyncpg.InterfaceError,  # the pool is closing
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    ValueError,  # the URL cannot be parsed
)
"""Errors before there is a connection."""

_LOG = structlog.get_logger()


def lacks_space(unavailable: DatabaseUnavailable) -> bool:
    """Whether the database can be reached, and its disk is full."""
    return isinstance(unavailable.__cause__, asyncpg.DiskFullError)


def unavailable(cause: Exception) -> DatabaseUnavailable:
    """Log `cause` for the operator, and return the error for the caller."""
    _LOG.warning("database.unavailable", cause=type(cause).__name__, detail=str(cause))
    does = "write to" if isinstance(cause, asyncpg.DiskFullError) else "reach"
    return DatabaseUnavailable(
        f"The service cannot {does} its database at the moment. Try again in {RETRY_AFTER_SECONDS} seconds.",
        RETRY_AFTER_SECONDS,
    )
