"""Configuration of the log: console format or JSON."""

import logging
import sys
from typing import Literal

import msgspec
import structlog


def configure_log(
    form: Literal["auto", "console", "json"], level: Literal["debug", "info", "warning", "error"]
) -> None:
    """Send structlog's events to standard error; `auto` is console on a terminal, otherwise JSON."""
    console = form == "console" or (form == "auto" and sys.stderr.isatty())
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    minimum = structlog.make_filtering_bound_logger(getattr(logging, level.upper()))
    if console:
        structlog.configure(
            processors=[
                *shared,
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
        processors=[
            *shared,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(serializer=_encode),
        ],
        wrapper_class=minimum,
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        cache_logger_on_first_use=True,
    )


def _encode(event: object, **_options: object) -> bytes:
    return msgspec.json.encode(event, enc_hook=str)
