"""Pipelines of the tests."""

from pathlib import Path

import pytest

from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave half of the cases of a test to each way: `test_sessions` tries that both give the same.

    The only case of a test goes both ways.
    """
    cases: dict[tuple[Path, str, bool], list[pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "either" in item.callspec.params:
            has_sessions = bool(item.callspec.params["either"])
            cases.setdefault((item.path, item.originalname, has_sessions), []).append(item)
    left_out = {
        item
        for (_, _, has_sessions), alike in cases.items()
        if len(alike) > 1
        for number, item in enumerate(alike)
        if number.bit_count() % 2 == has_sessions  # not in turn, which would give each target always the same way
    }
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def pipeline(converters: Converters) -> Pipeline:
    """The way of the service, which takes less time than the other one."""
    return Pipeline(converters, has_sessions=True)


@pytest.fixture(params=[True, False], ids=["session", "work file"])
def either(request: pytest.FixtureRequest, converters: Converters) -> Pipeline:
    """One that holds uploads in a session, then one that reads them into a work file: the results are the same."""
    return Pipeline(converters, has_sessions=request.param)
