"""Pipelines of the tests."""

import pytest

from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters


@pytest.fixture
def pipeline(converters: Converters) -> Pipeline:
    return Pipeline(converters)


@pytest.fixture(params=[True, False], ids=["session", "work file"])
def either(request: pytest.FixtureRequest, converters: Converters) -> Pipeline:
    """One that holds uploads in a session, then one that reads them into a work file: the results are the same."""
    return Pipeline(converters, has_sessions=request.param)
