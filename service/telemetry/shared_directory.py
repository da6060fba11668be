"""The directory in which processes share metrics: a variable that prometheus_client reads on import.

The library names the files of a process by its id. The processes of one service are named by their numbers instead: a
process that replaces another one continues its counters, and the number of files stays the same.
"""

import os
from pathlib import Path

from prometheus_client import values
from prometheus_client.multiprocess import mark_process_dead

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
NUMBER_VARIABLE = "PROMETHEUS_MULTIPROC_NUMBER"


def shared_directory() -> Path | None:
    """Return the directory, or None if each process exposes its own metrics."""
    name = os.environ.get(VARIABLE)  # noqa: TID251 -- a variable of the library, not a setting
    return Path(name) if name else None


def has_number() -> bool:
    """Whether this process is one of several, whose parent removes the live gauges of those that end."""
    return NUMBER_VARIABLE in os.environ  # noqa: TID251 -- set by that parent


def variables_for(number: int, directory: Path) -> dict[str, str]:
    """Return the variables with which a new process shares its metrics, unless the operator has set them."""
    return {} if shared_directory() else {VARIABLE: str(directory), NUMBER_VARIABLE: str(number)}


def forget_gauges(number: int, directory: Path) -> None:
    """Remove the live gauges of a process that has ended; its counters stay for the one that replaces it."""
    mark_process_dead(number, str(directory))


def prepare() -> None:
    """Create the directory, which the library expects to exist, and name this process in it."""
    if (directory := shared_directory()) is not None:
        directory.mkdir(parents=True, exist_ok=True)
        if has_number():
            number = int(os.environ[NUMBER_VARIABLE])  # noqa: TID251 -- see above
            values.ValueClass = values.MultiProcessValue(lambda: number)
