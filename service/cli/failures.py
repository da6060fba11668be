"""The sentence for each failure that an operator can remedy; everything else is a defect, with its traceback."""

import errno
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

from sandbox.pool import SandboxUnavailable
from service.accounts.administration import AdministrationError
from service.cli.command import CommandError
from service.db.faults import lacks_space
from service.db.migrations import MigrationError
from service.engine.capabilities import ConverterMissing
from service.errors import (
    DatabaseUnavailable,
    GeomillError,
    QueueUnavailable,
    QueueUnusable,
    StorageFault,
    StorageUnavailable,
)
from service.postgres_embedded import EmbeddedPostgresError
from service.settings import Settings, SettingsError

_CHECKS_OF_BUCKET: Mapping[StorageFault, str] = {
    "denied": "GEOMILL_S3_ACCESS_KEY, GEOMILL_S3_SECRET_KEY, the rights of the key, and the clock of this host",
    "misconfigured": "GEOMILL_S3_BUCKET, GEOMILL_S3_REGION, GEOMILL_S3_ENDPOINT and GEOMILL_S3_ADDRESSING",
    "down": "GEOMILL_S3_ENDPOINT, the server, and the network between them",
    "slow": "GEOMILL_S3_ENDPOINT, the server, and the network between them",
    "full": "the space and the quota of the server",
}
"""Where to look for the cause of each fault of a bucket."""


def sentence_for(error: Exception, settings: Settings) -> str | None:
    """Return the sentence for a failure of a command; None for a defect."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return next((words(error, settings) for kind, words in _SENTENCES if isinstance(error, kind)), None)


def _as_it_is(error: Any, _settings: Settings) -> str:
    return str(error)


def _of_sandbox(error: SandboxUnavailable, _settings: Settings) -> str:
    return f"{error} The settings that decide this are GEOMILL_SANDBOX, GEOMILL_DATA_DIR and GEOMILL_MEMORY_DIR."


def _of_database(error: DatabaseUnavailable, settings: Settings) -> str:
    cause = _cause_of(error)
    named = "The database that GEOMILL_DATABASE_URL names"
    if not settings.database_url:
        named = f"The embedded database in {settings.data_path}"
    if lacks_space(error):
        return f"{named} cannot be written ({cause}). Free some space on its disk."
    check = "Check the URL and the server" if settings.database_url else "Try again"
    return f"{named} cannot be reached ({cause}). {check}."


def _of_queue(error: QueueUnavailable, _settings: Settings) -> str:
    cause = _cause_of(error)
    return f"The NATS server that GEOMILL_NATS_URL names cannot be used ({cause}). Check the URL and the server."


def _cause_of(error: Exception) -> str:
    if isinstance(error.__cause__, TimeoutError):
        return "no answer"
    return str(error.__cause__ or "").strip().rstrip(".") or type(error.__cause__).__name__


def _of_store(error: StorageUnavailable, settings: Settings) -> str:
    check = _CHECKS_OF_BUCKET[error.fault] if settings.s3_bucket else f"GEOMILL_DATA_DIR ({settings.data_path})"
    return f"The store of results cannot be used ({error.fault}: {error.detail}). Check {check}."


def _of_files(error: OSError, settings: Settings) -> str | None:
    """Blame the data directory for failures in it, and name any file for which there is no space; others are ours."""
    data = settings.data_path
    path = Path(error.filename) if isinstance(error.filename, str) else None
    is_in_data = path is not None and (path.is_relative_to(data) or data.is_relative_to(path))
    if error.errno in _FULL:
        if path is not None and not is_in_data:
            return f"{path}: {error.strerror}. Free some space there, or name another file."
        return f"{error.strerror}. Free some space, or name another directory in GEOMILL_DATA_DIR ({data})."
    if not is_in_data:
        return None
    told = f"GEOMILL_DATA_DIR cannot be used: {path} ({error.strerror})."
    if error.errno in _DENIED and data.exists():
        owner = f"chown -R {os.geteuid()} {shlex.quote(str(data))}"
        return f"{told} Give it to the user of the service, as with `{owner}`, or name another directory."
    return f"{told} Name a directory in which Geomill may write."


_DENIED = (errno.EACCES, errno.EPERM)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_SENTENCES: tuple[tuple[type[Exception] | UnionType, Callable[[Any, Settings], str | None]], ...] = (
    (AdministrationError | CommandError | ConverterMissing, _as_it_is),
    (EmbeddedPostgresError | MigrationError | SettingsError, _as_it_is),
    (SandboxUnavailable, _of_sandbox),
    (DatabaseUnavailable, _of_database),
    (QueueUnusable, _as_it_is),
    (QueueUnavailable, _of_queue),
    (StorageUnavailable, _of_store),
    (GeomillError, _as_it_is),
    (OSError, _of_files),
)
"""The words for each kind of failure; the first that applies."""
