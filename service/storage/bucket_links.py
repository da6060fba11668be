"""Links to the objects of a bucket: their expiry, the response headers they set, and their signature."""

from datetime import UTC, datetime
from typing import Protocol

from service.clock import Clock
from service.storage.bucket_config import BucketConfig
from service.storage.faults import within
from service.storage.names import content_disposition
from service.storage.port import Link, link_seconds
from service.storage.presign import Credentials, presign


class CredentialSource(Protocol):
    """The part of botocore's credentials, fixed or refreshed, that signing needs."""

    async def get_frozen_credentials(self) -> Credentials:
        """Return the current credentials; those of a role are refreshed before they expire."""


class BucketLinks:
    """Signs links to one bucket, whose URL for clients is `url`."""

    def __init__(
        self, url: str, bucket_config: BucketConfig, source: CredentialSource, *, clock: Clock, timeout_seconds: float
    ) -> None:
        self._url = url
        self._bucket_config = bucket_config
        self._source = source
        self._clock = clock
        self._seconds = timeout_seconds

    async def link(self, name: str, *, expires_at: datetime, download_name: str, media_type: str) -> Link | None:
        """Sign a link that expires no later than `expires_at`, the maximum of the signature, and the credentials."""
        with within(self._seconds):
            credentials = await self._source.get_frozen_credentials()
        start, seconds = link_seconds(self._clock(), self._end(expires_at))
        if not seconds:
            return None
        url = presign(
            self._url,
            self._bucket_config.prefix + name,
            region=self._bucket_config.region,
            credentials=credentials,
            start=start,
            seconds=seconds,
            response_headers=_response_headers(download_name, media_type),
        )
        return Link(url, datetime.fromtimestamp(start + seconds, UTC))

    def _end(self, expires_at: datetime) -> datetime:
        # Temporary credentials know their expiry, but botocore has no public name for it.
        end: datetime | None = getattr(self._source, "_expiry_time", None)
        return min(expires_at, end or expires_at)


def _response_headers(download_name: str, media_type: str) -> dict[str, str]:
    return {
        "response-cache-control": "private, no-cache",
        "response-content-disposition": content_disposition(download_name),
        "response-content-type": media_type,
    }
