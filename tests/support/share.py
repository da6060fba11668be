"""Divides the tests: `--share 2/3` runs the second of three shares, `--without-share 2/3` all others of some suites.

What two releases of the converter run between them is thus run once; a run may be without several shares. A test is in
the share that its module and its parameters give it, so tests that use the same conversion are in the same one, on
whatever release.
"""

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
    parser.addoption(
        "--without-share",
        action="append",
        default=[],
        metavar="K/N",
        help="leave this share of the formats' and data loss' tests out; may be repeated",
    )


@pytest.hookimpl(tryfirst=True)  # before xdist appends groups to names
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the other tests."""
    share = config.getoption("--share")
    only, without = share and Share(share), [Share(text) for text in config.getoption("--without-share")]

    def keeps(test: str) -> bool:
        return (not only or test in only) and not (test.startswith(CONVERTED) and any(test in but for but in without))

    left_out = [item for item in items if not keeps(item.nodeid)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if keeps(item.nodeid)]
