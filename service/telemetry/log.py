"""Configuration of the log: console format or JSON."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import structlog

from service.telemetry.events import LIBRARY_WARNED

STANDARD_ERROR = 2
_encoder = msgspec.json.Encoder(enc_hook=str)
_LEVELS = {"warn": "warning", "exception": "error"}
"""The names of levels that are those of others."""
_bound: ContextVar[Mapping[str, Any]] = ContextVar("bound")
"""What the events of a context have in common; structlog would look for it among all variables of the context."""


def bind(**values: object) -> None:
    """Add `values`, and nothing else, to all events of this context from now on."""
    _bound.set(values)


@contextmanager
def bound(**values: object) -> Iterator[None]:
    """Add `values` to the events of the block, beside those that it has anyway."""
    token = _bound.set({**_bound.get({}), **values})
    try:
        yield
    finally:
        _bound.reset(token)


def configure_log(
    form: Literal["auto", "console", "json"],
    level: Literal["debug", "info", "warning", "error"],
    process: int | None = None,
) -> None:
    """Send structlog's events to standard error; `auto` is console on a terminal, otherwise JSON.

    Each line of one of several serving processes has its number as `process`. Warnings of libraries, which use the
    standard library's logging, become events, too.
    """
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        _merge,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    of_process = [_adding(process)] if process is not None else []
    minimum = structlog.make_filtering_bound_logger(getattr(logging, level.upper()))
    if console:
        renderer = structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,  # others print variables, including keys
        )
        processors: list[structlog.typing.Processor] = [*shared, *of_process, _simplify, renderer]
    else:
        processors = [*of_process, _render]
    structlog.configure(
        processors=processors,
        wrapper_class=minimum,
        logger_factory=structlog.PrintLoggerFactory(sys.stderr)
        if console
        else structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )
    _OF_LIBRARIES.processors = processors
    _OF_LIBRARIES.setLevel(max(logging.WARNING, getattr(logging, level.upper())))
    logging.getLogger().addHandler(_OF_LIBRARIES)


class _Libraries(logging.Handler):
    """Writes the records of libraries as events.

    A library may log from anywhere, even from the garbage collector while an event is being written: structlog's lock,
    which a thread takes only once, is not for it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.processors: Sequence[structlog.typing.Processor] = ()

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record` to standard error; like all handlers, raise nothing."""
        try:
            os.write(STANDARD_ERROR, self._line(record))
        except Exception:  # noqa: BLE001 -- a library's arguments may be of any kind
            self.handleError(record)

    def _line(self, record: logging.LogRecord) -> bytes:
        detail = record.getMessage().encode(errors="backslashreplace").decode()
        event: Any = {"event": LIBRARY_WARNED, "library": record.name, "detail": detail}
        if record.exc_info:
            event["exc_info"] = record.exc_info
        level = "error" if record.levelno >= logging.ERROR else "warning"
        for processor in self.processors:
            event = processor(None, level, event)
        return (event if isinstance(event, bytes) else event.encode()) + b"\n"


_OF_LIBRARIES = _Libraries()


def _render(logger: object, level: str, event: structlog.typing.EventDict) -> bytes:
    """Render an event as JSON: what a console shows, in one step, because a conversion logs three events."""
    event = _merge(logger, level, event)
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, level, event)
    event["level"] = _LEVELS.get(level, level)
    event["timestamp"] = datetime.now(UTC)
    return _encoder.encode(event)


def _merge(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {**_bound.get({}), **event}


def _simplify(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Give a console the values that JSON has: `200`, not `<HTTPStatus.OK: 200>`."""
    return {
        name: value if name == "exc_info" else msgspec.to_builtins(value, enc_hook=str) for name, value in event.items()
    }


def _adding(process: int) -> structlog.typing.Processor:
    def add(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["process"] = process
        return event

    return add
