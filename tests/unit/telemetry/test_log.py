"""Each line of the log has one form."""

import json
import logging
import sys
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import structlog

from service.telemetry.log import configure_log

LIBRARY = logging.getLogger("driver.pool")


@pytest.fixture(autouse=True)
def as_json() -> Iterator[None]:
    """The log as a server writes it."""
    before = structlog.get_config()
    configure_log("json", "info")
    yield
    structlog.configure(**before)


def events(captured: pytest.CaptureFixture[bytes]) -> list[dict[str, Any]]:
    """What was logged."""
    return [json.loads(line) for line in captured.readouterr().err.splitlines()]


def test_what_libraries_report_becomes_events(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Warnings and errors, with their tracebacks; nothing below."""
    try:
        raise ValueError("broken")  # noqa: TRY301 -- the failure that the library logs
    except ValueError:
        LIBRARY.warning("A connection %s.", "failed", exc_info=True)
    LIBRARY.info("A connection is there.")
    LIBRARY.error("No connection is there.")
    failed, none = events(capfdbinary)
    assert (failed["event"], failed["level"], failed["library"]) == ("library.warned", "warning", "driver.pool")
    assert failed["detail"] == "A connection failed."
    assert "ValueError: broken" in failed["exception"]
    assert (none["level"], none["detail"]) == ("error", "No connection is there.")
    assert "exception" not in none


def test_a_report_that_cannot_be_encoded_is_written(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """It names a file whose name is not UTF-8; only our handler gets it, because pytest's cannot take it."""
    [handler] = (one for one in logging.getLogger().handlers if type(one).__module__ == configure_log.__module__)
    handler.handle(logging.makeLogRecord({"msg": "No file \udcff.", "levelno": logging.WARNING}))
    assert [event["detail"] for event in events(capfdbinary)] == [r"No file \udcff."]


def test_a_library_may_report_while_an_event_is_written(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """As asyncio does when the garbage collector finds a failed task: a thread must not wait for itself."""
    logger = structlog.BytesLogger(sys.stderr.buffer)
    with logger._lock:  # which structlog holds while it writes
        LIBRARY.warning("A task was lost.")
    assert [event["detail"] for event in events(capfdbinary)] == ["A task was lost."]


def test_a_careless_report_harms_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """With too few values for its text, or with a level of its own."""
    monkeypatch.setattr(logging, "raiseExceptions", False)
    LIBRARY.warning("%d connections", "many")
    LIBRARY.log(35, "odd")


def test_a_console_shows_values_as_json_has_them(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Ids can be copied, and tracebacks are there."""
    configure_log("console", "info")
    job = UUID("0190a6e5-7b1c-7000-8000-000000000001")
    try:
        raise ValueError("broken")  # noqa: TRY301 -- the failure that is logged
    except ValueError:
        structlog.get_logger().exception("request.failed", job_id=job, status=HTTPStatus.OK, path=Path("a b"))
    line, *traceback = capfdbinary.readouterr().err.decode().splitlines()
    assert f"job_id={job}" in line
    assert "status=200" in line
    assert "path='a b'" in line
    assert traceback[-1] == "ValueError: broken"
