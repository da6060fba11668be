"""One look at the host's converter for all tests, and a pipeline for each."""

from pathlib import Path

import pytest

from service.engine.capabilities import Capabilities
from tests.integration.formats.pipeline import Pipeline, host_capabilities


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Capabilities:
    return host_capabilities(tmp_path_factory.mktemp("data"))


@pytest.fixture
def pipeline(host: Capabilities, tmp_path: Path) -> Pipeline:
    (tmp_path / "jobs").mkdir()
    return Pipeline(host, tmp_path / "jobs")
