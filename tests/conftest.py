"""What every test may use: see the plugins."""

pytest_plugins = ["tests.database", "tests.support.skips"]
