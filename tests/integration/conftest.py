"""The service's converters, and the service itself, each opened once for each worker of a test run."""

from collections.abc import Iterator

import pytest

from service.engine.capabilities import Capabilities
from tests.support.converters import Converters, running_converters
from tests.support.world import here, shared_world

__all__ = ["converters", "here", "host", "shared_world"]


@pytest.fixture(scope="session")
def converters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Converters]:
    with running_converters(tmp_path_factory.mktemp("converters")) as running:
        yield running


@pytest.fixture(scope="session")
def host(converters: Converters) -> Capabilities:
    return converters.engine.capabilities
