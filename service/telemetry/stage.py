"""The stages of a file, each a span and a figure: receive, admit, wait, convert, store, settle."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, get_args

from service.telemetry.metrics import STAGE_SECONDS
from service.telemetry.tracing import Value, span

Stage = Literal["receive", "admit", "wait", "convert", "store", "settle"]

_SECONDS = {name: STAGE_SECONDS.labels(name) for name in get_args(Stage)}


@contextmanager
def stage(name: Stage, **attributes: Value) -> Iterator[None]:
    """Observe what is done in the block as a stage, whether it succeeds or not."""
    with span(name, **attributes), _SECONDS[name].time():
        yield
