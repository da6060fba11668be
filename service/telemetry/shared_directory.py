"""The directory in which processes share metrics: a variable that prometheus_client reads on import."""

import os
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def shared_directory() -> Path | None:
    """Return the directory, or None if each process exposes its own metrics."""
    name = os.environ.get(VARIABLE)  # noqa: TID251 -- a variable of the library, not a setting
    return Path(name) if name else None


def prepare() -> None:
    """Create the directory, which the library expects to exist."""
    if (directory := shared_directory()) is not None:
        directory.mkdir(parents=True, exist_ok=True)
