"""A pytest plugin that runs a test again if it failed while the clock of the host was set, or the host was resumed.

The run lists these tests. Tests of clocks that jump give the service clocks of their own, and leave the host alone.
"""

import time

import pytest
from _pytest.runner import runtestprotocol

NOTICED_SECONDS = 1.0
"""Clocks are often corrected by less, which no test minds."""
_AGAIN = "ran again"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test as pytest does, and run it once more if it failed while the clock jumped."""
    hooks = item.ihook
    hooks.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    lead = _lead_seconds()
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    jump = _lead_seconds() - lead
    if abs(jump) > NOTICED_SECONDS and any(report.failed for report in reports):
        item.user_properties.append((_AGAIN, f"the host's clock jumped by {jump:.0f} s"))
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        hooks.pytest_runtest_logreport(report=report)
    hooks.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the tests that ran again."""
    for report in terminalreporter.getreports("passed"):
        for name, why in report.user_properties:
            if name == _AGAIN and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid} ran again: {why}")


def _lead_seconds() -> float:
    """Return how far the clock that can be set is ahead of the one that cannot."""
    return time.time() - time.monotonic()
