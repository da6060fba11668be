"""What every test may use: see the plugins."""

import gc
import os
import signal
import sys
from functools import cache

from httpx._config import DEFAULT_TIMEOUT_CONFIG
from httpx._transports import default
from hypothesis import HealthCheck, settings
from structlog.dev import ConsoleRenderer, plain_traceback

from tests.support import probed
from tests.support.patience import PATIENCE_SECONDS

# A test run starts hundreds of Pythons: they compile once, whatever is set here.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The tests, and all that they import, live to the end: looking for garbage among them takes a tenth of their
# collection.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage among what follows only, and keep this run's options from the runs that tests start.

    Not before: xdist's workers read them from the environment, and begin when this module has been imported.
    """
    gc.freeze()
    gc.enable()
    os.environ.pop("PYTEST_ADDOPTS", None)


# A shell has what it starts in the background ignore SIGINT, which the commands that tests interrupt would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A client of httpx reads all authorities that this host trusts, though it will speak plain HTTP: that takes most of
# the time of a small test. Once is enough for all clients.
default.create_ssl_context = cache(default.create_ssl_context)  # type: ignore[attr-defined]  # where clients look it up

# Nor does it wait for longer than five seconds, unless it is told to.
for phase in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, phase, PATIENCE_SECONDS)

# Tracebacks are as plain as those of a service: to draw one with its variables takes seconds, in which an event loop
# stands still.
ConsoleRenderer.get_active().exception_formatter = plain_traceback

probed.look_once()

pytest_plugins = [
    "tests.database",
    "tests.support.share",
    "tests.support.host_clock",
    "tests.support.order",
    "tests.support.setup",
    "tests.support.skips",
]

# An example takes as long as the host takes, so none is held to a time.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
