"""What every test may use: see the plugins."""

import os
import sys

from hypothesis import HealthCheck, settings

# A test run starts hundreds of Pythons: they compile once, whatever is set here.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

pytest_plugins = ["tests.database", "tests.support.skips"]

# An example takes as long as the host takes, so none is held to a time.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
