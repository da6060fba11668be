"""The store of results: buckets, or a directory of this host."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from service.clock import DatabaseClock
from service.settings import Settings
from service.storage.bucket_config import BucketConfig, read_bucket_configs
from service.storage.local import open_local
from service.storage.port import Storage
from service.storage.secrets import parse_secrets, stored_secrets


def open_storage(settings: Settings, clock: DatabaseClock | None = None) -> AbstractAsyncContextManager[Storage]:
    """Open the store of results that the settings name: buckets, or a directory of this host."""
    clock = clock or DatabaseClock()
    if places := read_bucket_configs(settings):
        return _open_buckets(places, settings, clock)
    given = settings.link_secrets
    secrets = parse_secrets(given) if given else stored_secrets(settings.data_path / "link-secrets")
    return open_local(settings.data_path / "store", secrets, clock=clock)


def _open_buckets(
    places: Mapping[str, BucketConfig], settings: Settings, clock: DatabaseClock
) -> AbstractAsyncContextManager[Storage]:
    # Loading the S3 client takes longer than all the rest of a start, and is of no use without a bucket.
    from service.storage.clients import Effort  # noqa: PLC0415 -- see above
    from service.storage.s3 import open_s3  # noqa: PLC0415 -- see above

    effort = Effort(
        timeout_seconds=settings.s3_timeout_seconds, attempts=settings.s3_attempts, connections=settings.s3_connections
    )
    return open_s3(places, effort, clock=clock)
