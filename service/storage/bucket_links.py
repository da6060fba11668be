"""Links to the objects of a bucket: their expiry, the response headers they set, and their signature."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

from service.clock import DatabaseClock
from service.storage.bucket_config import BucketConfig
from service.storage.faults import within
from service.storage.names import content_disposition
from service.storage.port import Link, link_seconds
from service.storage.presign import Credentials, presign

MOST_BRIDGED = timedelta(days=1)
"""A signature that began so long ago still has six of its seven days."""


class CredentialSource(Protocol):
    """The part of botocore's credentials, fixed or refreshed, that signing needs."""

    async def get_frozen_credentials(self) -> Credentials:
        """Return the current credentials; those of a role are refreshed before they expire."""


class BucketLinks:
    """Signs links to one bucket, whose URL for clients is `url`."""

    def __init__(
        self,
        url: str,
        bucket_config: BucketConfig,
        source: CredentialSource,
        *,
        clock: DatabaseClock,
        timeout_seconds: float,
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
        now, ahead = self._clock(), self._clock.host_ahead
        start, seconds = link_seconds(now, self._end(expires_at, ahead))
        if not seconds:
            return None
        expires_at = datetime.fromtimestamp(start + seconds, UTC)
        start, seconds = _by_either_clock(now, ahead, expires_at)
        url = presign(
            self._url,
            self._bucket_config.prefix + name,
            region=self._bucket_config.region,
            credentials=credentials,
            start=start,
            seconds=seconds,
            response_headers=_response_headers(download_name, media_type),
        )
        return Link(url, min(expires_at, datetime.fromtimestamp(start + seconds, UTC)))

    def _end(self, expires_at: datetime, ahead: timedelta) -> datetime:
        # Temporary credentials know their expiry, by the host's clock, but botocore has no public name for it.
        end: datetime | None = getattr(self._source, "_expiry_time", None)
        return expires_at if end is None else min(expires_at, end - ahead)


def _by_either_clock(now: datetime, ahead: timedelta, expires_at: datetime) -> tuple[int, int]:
    """Return the start and duration of a signature that lasts until `expires_at` by the database's clock.

    It also lasts as long by the clock of this host, which is `ahead`. The store has the time of one of them: it refuses
    requests of hosts whose clocks differ from its own by a quarter of an hour. If they differ by more than a signature
    can bridge, the clock that signs those requests counts.
    """
    if abs(ahead) > MOST_BRIDGED:
        return link_seconds(now + ahead, expires_at + ahead)
    return link_seconds(now + min(ahead, timedelta()), expires_at + max(ahead, timedelta()))


def _response_headers(download_name: str, media_type: str) -> dict[str, str]:
    return {
        "response-cache-control": "private, no-cache",
        "response-content-disposition": content_disposition(download_name),
        "response-content-type": media_type,
    }
