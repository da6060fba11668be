"""The description of the interface, as it is kept for all clients."""

from contextlib import AbstractAsyncContextManager

from service.http.application import Application, DeploymentConfig
from service.intake.form import IntakeLimits
from service.usecases.services import Services


def never_opened() -> AbstractAsyncContextManager[Services]:
    """The services of an application that serves nobody."""
    raise AssertionError


def test_clients_share_one_description() -> None:
    """Anybody may ask for it over thousands of connections and read nothing: one for each took half a gigabyte."""
    described = Application(never_opened, DeploymentConfig()).state.describe
    assert described(IntakeLimits(), "/geo") is described(IntakeLimits(), "/geo")
    assert isinstance(described(IntakeLimits(), "/geo"), bytes)
    assert described(IntakeLimits(), "/geo") != described(IntakeLimits(), "")
