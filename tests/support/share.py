"""Divides the tests: `--share 2/3` runs the second of three shares, `--without-share 2/3` all others.

A share that another release of the converter runs is left out by `--elsewhere 2/3`, only of the suites that depend on
the release. A test is in the share that its module and its parameters give it, so tests that use the same conversion
are in the same one, on whatever release.
"""

import os
from zlib import crc32

import pytest

CONVERTED = ("tests/integration/formats/", "tests/integration/dataloss/")
"""The suites of what the converter makes of files, which depend on its release more than on anything else here."""


class Share:
    """A part of all tests, such as `2/3`: the second of three."""

    def __init__(self, text: str) -> None:
        number, _, shares = text.partition("/")
        if not (number.isdecimal() and shares.isdecimal() and 1 <= int(number) <= int(shares)):
            raise pytest.UsageError(f"{text!r} is no share. Write the first of three as 1/3.")
        self._number, self._shares = int(number) - 1, int(shares)

    def __contains__(self, test: str) -> bool:
        module, _, name = test.partition("::")
        function, bracket, parameters = name.partition("[")
        return crc32(f"{module} {parameters if bracket else function}".encode()) % self._shares == self._number


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--share", metavar="K/N", help="run only the Kth of N shares of the tests")
    parser.addoption("--without-share", metavar="K/N", help="leave this share of the tests out")
    parser.addoption("--elsewhere", metavar="K/N", help="leave this share of the formats' and data loss' tests out")


def pytest_configure(config: pytest.Config) -> None:
    """Keep options that the environment has for this run from those that its tests start."""
    if hasattr(config, "workerinput"):  # the first process still has to pass them to the others
        os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.hookimpl(tryfirst=True)  # before xdist appends groups to names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other tests."""
    options = ("--share", "--without-share", "--elsewhere")
    only, without, elsewhere = (text and Share(text) for text in map(config.getoption, options))

    def keeps(test: str) -> bool:
        return (
            (not only or test in only)
            and not (without and test in without)
            and not (elsewhere and test.startswith(CONVERTED) and test in elsewhere)
        )

    left_out = [item for item in items if not keeps(item.nodeid)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if keeps(item.nodeid)]
