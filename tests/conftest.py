"""What every test may use: see the plugins."""

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.database", "tests.support.skips"]

# An example takes as long as the host takes, so none is held to a time.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
