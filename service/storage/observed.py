"""What an operator learns of the store, whichever it is: how long it takes, how it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from service.errors import StorageUnavailable
from service.telemetry.metrics import STORAGE_FAILURES, STORAGE_SECONDS

Operation = Literal["put", "link", "delete", "check"]


@contextmanager
def observed(operation: Operation) -> Iterator[None]:
    """Observe one use of the store in the block; its failure goes on to whoever asked."""
    with STORAGE_SECONDS.labels(operation).time():
        try:
            yield
        except StorageUnavailable as unavailable:
            STORAGE_FAILURES.labels(unavailable.fault).inc()
            raise
