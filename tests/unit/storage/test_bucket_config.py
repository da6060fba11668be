"""Buckets from settings."""

import pytest

from service.settings import Settings, SettingsError, read_settings
from service.storage.bucket_config import HOME, read_bucket_configs

KEYS = {"access_key": "key-of-account", "secret_key": "very secret"}


def settings(**values: str) -> Settings:
    """Read settings as the environment gives them."""
    return read_settings({f"GEOMILL_S3_{name.upper()}": value for name, value in values.items()})


def test_without_a_bucket_there_is_no_place() -> None:
    """Results then stay on this host."""
    assert read_bucket_configs(settings()) == {}


def test_a_bucket_on_aws_stands_in_the_host_and_elsewhere_in_the_path() -> None:
    """This is what `auto` means, and it can be overridden."""
    own = {"bucket": "results", "endpoint": "https://s3.example"}
    assert read_bucket_configs(settings(bucket="results"))[HOME].addressing_style == "virtual"
    assert read_bucket_configs(settings(**own))[HOME].addressing_style == "path"
    assert read_bucket_configs(settings(**own, addressing="virtual"))[HOME].addressing_style == "virtual"


def test_a_region_says_only_what_differs() -> None:
    """Everything else comes from the home region."""
    regions = '{"eu": {"bucket": "results-eu", "region": "eu-central-1"}}'
    places = read_bucket_configs(settings(bucket="results", **KEYS, regions=regions))
    assert set(places) == {HOME, "eu"}
    assert (places["eu"].bucket, places["eu"].region) == ("results-eu", "eu-central-1")
    assert places["eu"].access_key == "key-of-account"


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"bucket": "b"}, "bucket"),
        ({"endpoint": "https://s3.example"}, "GEOMILL_S3_BUCKET"),
        ({"sse": "aws:kms"}, "GEOMILL_S3_SSE needs a bucket. Set GEOMILL_S3_BUCKET"),
        ({"prefix": "tiles/"}, "GEOMILL_S3_PREFIX"),
        ({"bucket": "results", "access_key": "key"}, "or neither"),
        ({"bucket": "results", "endpoint": "s3.example"}, "https://"),
        ({"bucket": "results", "regions": "eu"}, "GEOMILL_S3_REGIONS"),
        ({"bucket": "results", "regions": '{"eu": {"buckt": "results-eu"}}'}, "buckt"),
        ({"bucket": "results", "regions": '{"EU west": {"bucket": "results-eu"}}'}, "GEOMILL_S3_REGIONS"),
        ({"bucket": "results", "regions": '{"eu": {"region": "eu-central-1"}}'}, "names a bucket twice"),
        ({"bucket": "results", "addressing": "dns"}, "GEOMILL_S3_ADDRESSING"),
        ({"bucket": "results", "sse": "rot13"}, "GEOMILL_S3_SSE"),
        ({"bucket": "results", "timeout_seconds": "0"}, "GEOMILL_S3_TIMEOUT_SECONDS"),
    ],
)
def test_settings_that_cannot_work_stop_the_start(values: dict[str, str], complaint: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(SettingsError, match=complaint):
        read_bucket_configs(settings(**values))


def test_keys_do_not_show() -> None:
    """A bucket configuration in a log or traceback reveals no secret."""
    places = read_bucket_configs(settings(bucket="results", **KEYS))
    assert "secret" not in repr(places)
    assert "key-of-account" not in repr(places)
