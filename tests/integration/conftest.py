"""The service's converters, opened once for each worker of a test run."""

from collections.abc import Iterator

import pytest

from service.engine.capabilities import Capabilities
from tests.support.converters import Converters, running_converters


@pytest.fixture(scope="session")
def converters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Converters]:
    with running_converters(tmp_path_factory.mktemp("converters")) as running:
        yield running


@pytest.fixture(scope="session")
def host(converters: Converters) -> Capabilities:
    return converters.engine.capabilities
