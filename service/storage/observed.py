"""Metrics of the store: duration and failures of its operations."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

from service.errors import StorageFault, StorageUnavailable
from service.telemetry.metrics import STORAGE_FAILURES, STORAGE_SECONDS, start_at_zero

Operation = Literal["put", "link", "read", "delete", "check"]

start_at_zero(STORAGE_FAILURES, get_args(StorageFault))


@contextmanager
def observed(operation: Operation) -> Iterator[None]:
    """Observe the operation in the block; its failure propagates."""
    with STORAGE_SECONDS.labels(operation).time():
        try:
            yield
        except StorageUnavailable as unavailable:
            STORAGE_FAILURES.labels(unavailable.fault).inc()
            raise
