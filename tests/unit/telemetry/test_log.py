"""Each line of the log has one form."""

import json
import logging

import pytest
import structlog

from service.telemetry.log import configure_log


def test_what_libraries_report_becomes_events(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Warnings and errors, with their tracebacks; nothing below."""
    before = structlog.get_config()
    configure_log("json", "info")
    logging.getLogger("driver.pool").error("No connection is there.")
    try:
        raise ValueError("broken")  # noqa: TRY301 -- the failure that the library logs
    except ValueError:
        logging.getLogger("driver.pool").warning("A connection %s.", "failed", exc_info=True)
        logging.getLogger("driver.pool").info("A connection is there.")
    finally:
        structlog.configure(**before)
    no_connection, failed = map(json.loads, capsysbinary.readouterr().err.splitlines())
    assert (failed["event"], failed["level"], failed["library"]) == ("library.warned", "warning", "driver.pool")
    assert failed["detail"] == "A connection failed."
    assert "ValueError: broken" in failed["exception"]
    assert (no_connection["level"], no_connection["detail"]) == ("error", "No connection is there.")
    assert "exception" not in no_connection
