"""Links to the objects of a bucket: how long they may last, what they say in the answer, signed afresh each time."""

from datetime import UTC, datetime
from typing import Protocol

from service.clock import Clock
from service.storage.bucket_config import BucketConfig
from service.storage.faults import within
from service.storage.names import content_disposition
from service.storage.port import Link, link_seconds
from service.storage.presign import Credentials, presign


class CredentialSource(Protocol):
    """The part of botocore's credentials, fixed or refreshed by it, that signs."""

    async def get_frozen_credentials(self) -> Credentials:
        """Return the credentials of now; those of a role are fetched again before they end."""


class BucketLinks:
    """Signs links to one bucket, whose address for clients is `url`."""

    def __init__(
        self, url: str, place: BucketConfig, source: CredentialSource, *, clock: Clock, timeout_seconds: float
    ) -> None:
        self._url = url
        self._place = place
        self._source = source
        self._clock = clock
        self._seconds = timeout_seconds

    async def link(self, name: str, *, expires_at: datetime, download_name: str, media_type: str) -> Link | None:
        """Sign a link that outlives neither `expires_at`, nor the signature's maximum, nor the credentials."""
        with within(self._seconds):
            credentials = await self._source.get_frozen_credentials()
        start, seconds = link_seconds(self._clock(), self._end(expires_at))
        if not seconds:
            return None
        url = presign(
            self._url,
            self._place.prefix + name,
            region=self._place.region,
            credentials=credentials,
            start=start,
            seconds=seconds,
            answer=_answer(download_name, media_type),
        )
        return Link(url, datetime.fromtimestamp(start + seconds, UTC))

    def _end(self, expires_at: datetime) -> datetime:
        # Temporary credentials know when they end, but botocore has no public name for it.
        end: datetime | None = getattr(self._source, "_expiry_time", None)
        return min(expires_at, end or expires_at)


def _answer(download_name: str, media_type: str) -> dict[str, str]:
    return {
        "response-cache-control": "private, no-cache",
        "response-content-disposition": content_disposition(download_name),
        "response-content-type": media_type,
    }
