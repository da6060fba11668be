"""A fleet's process asks for what it needs in one sentence, before anything is opened."""

import pytest

from service.app import require_fleet
from service.settings import Settings, SettingsError, read_settings
from service.usecases.services import Role

SHARED = {
    "GEOMILL_NATS_URL": "nats://nats",
    "GEOMILL_DATABASE_URL": "postgresql://db",
    "GEOMILL_S3_BUCKET": "results",
}


@pytest.mark.parametrize("role", ["gateway", "worker"])
@pytest.mark.parametrize("missing", SHARED)
def test_nothing_of_a_fleet_is_embedded(role: Role, missing: str) -> None:
    """Neither the database nor the store, which other hosts could not reach."""
    settings = read_settings({name: value for name, value in SHARED.items() if name != missing})
    with pytest.raises(SettingsError, match=rf"^A {role} shares .* Set {missing}\.$"):
        require_fleet(settings, role)


def test_a_queue_that_would_not_be_used_is_refused() -> None:
    """A process that converts its own uploads does not use a queue."""
    with pytest.raises(SettingsError, match="--role gateway"):
        require_fleet(Settings(nats_url="nats://nats"), "all")
    require_fleet(Settings(), "all")
    require_fleet(read_settings(SHARED), "worker")
