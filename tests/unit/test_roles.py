"""A fleet's process asks for what it needs in one sentence, before anything is opened."""

from typing import get_args

import pytest

from service.app.fleet import require_fleet
from service.settings import Settings, SettingsError, read_settings
from service.usecases.services import Role

SHARED = {
    "GEOMILL_NATS_URL": "nats://nats",
    "GEOMILL_DATABASE_URL": "postgresql://db",
    "GEOMILL_S3_BUCKET": "results",
}


@pytest.mark.parametrize("role", ["all", "gateway", "worker"])
@pytest.mark.parametrize("missing", SHARED)
def test_nothing_of_a_fleet_is_embedded(role: Role, missing: str) -> None:
    """Neither the database nor the store, which other hosts could not reach."""
    settings = read_settings({name: value for name, value in SHARED.items() if name != missing})
    if role == "all" and missing == "GEOMILL_NATS_URL":
        require_fleet(settings, role)  # which is no fleet
        return
    with pytest.raises(SettingsError, match=rf"^A .* shares .* Set {missing}\.$"):
        require_fleet(settings, role)


def test_what_is_shared_suffices() -> None:
    """And a process that shares nothing needs nothing."""
    require_fleet(Settings(), "all")
    for role in get_args(Role):
        require_fleet(read_settings(SHARED), role)
