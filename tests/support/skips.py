"""A pytest plugin: in CI, a test may be skipped because of the host, never because of a missing program.

A test that is skipped for a missing program would stay so unseen. What is skipped is listed at the end of a run.
"""

import os
import re
from collections.abc import Generator

import pytest

WHAT_HOSTS_ARE = re.compile(
    r"only root|what root does|no Python (that other users can execute|here with which an ordinary user)"  # rights
    r"|no memory groups|memory groups cannot|lets (nobody|no test) mount"  # the kernel, and what a container takes away
    r"|this host refuses namespaces|no file system in memory|no second file system|another C library|on Linux only"
)
"""Reasons that stand in CI too; everything else can be installed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail skips that CI does not allow."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("CI"):
        assert isinstance(report.longrepr, tuple)
        path, line, reason = report.longrepr
        if not WHAT_HOSTS_ARE.search(reason):
            report.outcome = "failed"
            report.longrepr = f"{path}:{line}: {reason}. CI must have what its tests need."
    return report
