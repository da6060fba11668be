"""The signals that stop the service."""

import signal

import pytest

from service.cli.stopping import stop_signals


@pytest.mark.parametrize("before", [signal.SIG_DFL, signal.SIG_IGN])
async def test_the_end_of_a_terminal_is_heeded_unless_it_is_ignored(before: signal.Handlers) -> None:
    """`nohup` lets a service outlive its terminal."""
    found = signal.signal(signal.SIGHUP, before)
    try:
        with stop_signals():
            assert (signal.getsignal(signal.SIGHUP) is before) == (before is signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGHUP, found)
