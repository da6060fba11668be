"""Where processes share their figures, if they do: the library's own switch, which it reads when it is imported."""

import os
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"


def shared_directory() -> Path | None:
    """Return the directory, or None where each process shows its own figures."""
    name = os.environ.get(VARIABLE)  # noqa: TID251 -- no setting of ours, see above
    return Path(name) if name else None


def prepare() -> None:
    """Make the directory, so that the library finds it."""
    if (directory := shared_directory()) is not None:
        directory.mkdir(parents=True, exist_ok=True)
