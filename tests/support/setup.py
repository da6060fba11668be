"""A pytest plugin that refuses to run on a checkout whose fork server is not that of its sources."""

import pytest

from sandbox import forkserver


def pytest_configure() -> None:
    """Say what to do: tests would fail in odd ways, or measure slower launchers than those of users."""
    if forkserver.is_stale():
        raise pytest.UsageError(forkserver.STALE)
