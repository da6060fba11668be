"""A pipeline for each test."""

import pytest

from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters


@pytest.fixture
def pipeline(converters: Converters) -> Pipeline:
    return Pipeline(converters)
