"""Runs a sample of the tests: `--every 3` takes every third of each module, always the same ones."""

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--every", type=int, default=1, metavar="N", help="run every Nth test of each module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all other tests."""
    every: int = config.getoption("--every")
    passed: Counter[str] = Counter()
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        module = item.nodeid.partition("::")[0]
        (left_out if passed[module] % every else kept).append(item)
        passed[module] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
