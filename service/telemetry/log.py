"""Configuration of the log: console format or JSON."""

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import msgspec
import structlog

from service.telemetry.events import LIBRARY_WARNED

_encoder = msgspec.json.Encoder(enc_hook=str)
_LEVELS = {"warn": "warning", "exception": "error"}
"""The names of levels that are those of others."""


def configure_log(
    form: Literal["auto", "console", "json"],
    level: Literal["debug", "info", "warning", "error"],
    process: int | None = None,
) -> None:
    """Send structlog's events to standard error; `auto` is console on a terminal, otherwise JSON.

    Each line of one of several serving processes has its number as `process`. Warnings of libraries, which use the
    standard library's logging, become events, too.
    """
    logging.getLogger().addHandler(_OF_LIBRARIES)
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    of_process = [_adding(process)] if process is not None else []
    minimum = structlog.make_filtering_bound_logger(getattr(logging, level.upper()))
    if console:
        structlog.configure(
            processors=[
                *shared,
                *of_process,
                structlog.dev.ConsoleRenderer(
                    colors=sys.stderr.isatty(),
                    exception_formatter=structlog.dev.plain_traceback,  # others print variables, including keys
                ),
            ],
            wrapper_class=minimum,
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
            cache_logger_on_first_use=True,
        )
        return
    structlog.configure(
        processors=[*of_process, _render],
        wrapper_class=minimum,
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )


class _Libraries(logging.Handler):
    """Makes events of the records of libraries."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log `record` as an event of its level."""
        logger = structlog.get_logger(library=record.name)
        logger.log(record.levelno, LIBRARY_WARNED, detail=record.getMessage(), exc_info=record.exc_info)


_OF_LIBRARIES = _Libraries(logging.WARNING)


def _render(logger: object, level: str, event: structlog.typing.EventDict) -> bytes:
    """Render an event as JSON: what a console shows, in one step, because a conversion logs three events."""
    event = structlog.contextvars.merge_contextvars(logger, level, event)
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, level, event)
    event["level"] = _LEVELS.get(level, level)
    event["timestamp"] = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return _encoder.encode(event)


def _adding(process: int) -> structlog.typing.Processor:
    def add(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["process"] = process
        return event

    return add
