"""The host's converter."""

import pytest

from service.engine.convert import Engine
from tests.integration.formats.pipeline import host_capabilities


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return Engine(host_capabilities(tmp_path_factory.mktemp("data")))
