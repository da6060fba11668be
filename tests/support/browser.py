"""The browser that tests drive and that takes pictures."""

import shutil

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first has the engine of the second without its windows, and takes less than half of its computing time."""


def browser_program() -> str | None:
    """The path of the first program that is installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)
