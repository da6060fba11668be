"""The URL of the queue, as its client is told."""

import pytest

from service.jobs.queue_address import read_address
from service.settings import SettingsError, read_settings

CLUSTER = ["nats://a:4222", "nats://b:4222", "nats://[::1]:4222"]


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats://nats", {"servers": ["nats://nats"]}),
        ("tls://u:p@a:4222", {"servers": ["tls://a:4222"], "user": "u", "password": "p"}),
        ("nats://to%2Bken@a", {"servers": ["nats://a"], "token": "to+ken"}),
        (
            "nats://u:a,b%40c%2F@a:1,nats://b:2",
            {"servers": ["nats://a:1", "nats://b:2"], "user": "u", "password": "a,b@c/"},
        ),
        ("nats://a:4222,nats://u:p@b:4222,nats://[::1]:4222", {"servers": CLUSTER, "user": "u", "password": "p"}),
        ("ws://a:80/nats", {"servers": ["ws://a:80/nats"]}),
    ],
)
def test_all_servers_of_a_cluster_get_the_same_credentials(url: str, address: dict[str, object]) -> None:
    """The client presents them to servers that it learns of later as well, and without percent signs."""
    assert read_settings({"GEOMILL_NATS_URL": url}).nats_url == url
    assert read_address(url) == address


@pytest.mark.parametrize(
    "url",
    ["a:4222", "http://a", "nats://", "nats://a:b", "nats://a b", "nats://a,b:4222", "nats://a:4222,", "nats://[::1"],
)
def test_what_names_no_server_is_refused_at_once(url: str) -> None:
    """The message names the setting and says what it may be."""
    with pytest.raises(SettingsError, match=r"^GEOMILL_NATS_URL is not valid. Expected: URL of the NATS server"):
        read_settings({"GEOMILL_NATS_URL": url})
