"""Every error that a caller can receive, in two separate families (interface 7).

GeomillError
├── RequestFault                the request itself is wrong: problem+json, one status and code each
│   ├── MissingApiKey
│   ├── InvalidApiKey
│   ├── InvalidIdentity         the gateway's signature of the caller's identity is invalid
│   ├── MalformedRequest
│   ├── UnsupportedEncoding     the body is compressed
│   ├── HeadersTooLarge
│   ├── InvalidParameter        names the parameter
│   ├── TooManyFiles
│   ├── UploadTooLarge
│   ├── BatchTooLarge
│   ├── UploadTimeout           the body stopped arriving, or arrives too slowly
│   ├── JobNotFound
│   ├── NoResult                the job has no result, or none any more
│   ├── DownloadRefused         an unsigned, forged or altered download link
│   ├── DownloadExpired
│   ├── RangeNotSatisfiable     carries the size of the result
│   ├── NotFound
│   ├── IdempotencyKeyReused
│   └── RetryableFault          the same request may succeed later; carries retry_after_seconds
│       ├── IdempotencyKeyInUse     names the jobs of the first request
│       ├── TooManyRequests
│       └── Overloaded
│           ├── DatabaseUnavailable  the same response; the log has the cause
│           └── QueueUnavailable     the same response: workers on other hosts cannot be told of jobs
├── StorageUnavailable          the store of results failed; neither the request nor the file is at fault
└── Rejection                   this file cannot be converted: HTTP 200, success false
    ├── LimitRefusal            a plan limit, the wallet, access or a payment past due refused it
    ├── NoRoom                  a disk of the service is full: it can be converted later
    └── MultipleLayers          the file has several layers, and the target stores one

Messages are for the person who sent the request. They say what is wrong and what to do, and never contain a path,
a stack trace, SQL or output of the converter. A table in `http/problems.py` has the status and code of each fault.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

Limit = Literal["fileSize", "data", "conversions", "wallet", "access"]
"""The values of `limit` (interface 7.2)."""


class GeomillError(Exception):
    """An error with a message for the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RequestFault(GeomillError):
    """The request itself is wrong, or cannot be accepted now."""


class MissingApiKey(RequestFault):
    """The header X-API-Key is absent."""


class InvalidApiKey(RequestFault):
    """The key is unknown or revoked, or the header occurs more than once."""


class InvalidIdentity(RequestFault):
    """The header X-Geomill-Identity is forged, altered or stale, or names no account."""


class MalformedRequest(RequestFault):
    """The body is not the multipart form that the endpoint expects."""


class UnsupportedEncoding(RequestFault):
    """The body comes in a Content-Encoding."""


class HeadersTooLarge(RequestFault):
    """The request line and headers exceed the maximum size."""


class InvalidParameter(RequestFault):
    """A field or query parameter has a value of the wrong kind."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class TooManyFiles(RequestFault):
    """A batch has more files than a request may have."""


class UploadTooLarge(RequestFault):
    """An upload exceeds the maximum size."""


class BatchTooLarge(RequestFault):
    """The body of a batch exceeds the maximum size."""


class UploadTimeout(RequestFault):
    """The body stopped arriving or arrives too slowly."""


class JobNotFound(RequestFault):
    """There is no such job, or it belongs to another account."""


class NoResult(RequestFault):
    """The job has no result, or its result is no longer kept."""


class DownloadRefused(RequestFault):
    """The download link is unsigned, forged or altered."""


class DownloadExpired(RequestFault):
    """The download link has expired, or the result has been deleted."""


class RangeNotSatisfiable(RequestFault):
    """The header Range requests bytes outside the result."""

    def __init__(self, message: str, size_bytes: int) -> None:
        super().__init__(message)
        self.size_bytes = size_bytes


class NotFound(RequestFault):
    """There is no such path."""


class IdempotencyKeyReused(RequestFault):
    """The same Idempotency-Key came with another file or other fields."""


class RetryableFault(RequestFault):
    """The same request may succeed later."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class IdempotencyKeyInUse(RetryableFault):
    """The first request with this Idempotency-Key is still running, or another request has taken the key over."""

    def __init__(self, job_ids: Sequence[str] = ()) -> None:
        """Name the jobs that the first request has, as far as they are known."""
        query = f" Query its jobs: {', '.join(job_ids)}." if job_ids else ""
        super().__init__(
            f"The first request with this Idempotency-Key is still running.{query} Try again in a moment.",
            retry_after_seconds=2,
        )
        self.job_ids = list(job_ids)


class TooManyRequests(RetryableFault):
    """The account has too many files in progress."""


class Overloaded(RetryableFault):
    """The service is full or shutting down."""


class DatabaseUnavailable(Overloaded):
    """PostgreSQL is unreachable or does not respond in time; the response is that of `Overloaded`."""


class QueueUnavailable(Overloaded):
    """The queue to the workers on other hosts is unreachable; the response is that of `Overloaded`."""


class QueueUnusable(QueueUnavailable):
    """Why the queue cannot be used, as an operator is told, who asked a command: the message says what to do."""


StorageFault = Literal["down", "slow", "full", "denied", "misconfigured"]
"""What is wrong with the store, for the log and the operator."""


class StorageUnavailable(GeomillError):
    """The store of results is unavailable; the conversion that needed it fails and is not charged.

    `message` is for the caller; `fault` and `detail` are for the operator and never part of a response.
    """

    def __init__(self, fault: StorageFault, detail: str) -> None:
        super().__init__("Files cannot be stored at the moment. Nothing was counted; try again in a few minutes.")
        self.fault = fault
        self.detail = detail


class ObjectMissing(StorageUnavailable):
    """The store is available, but has no such object."""


class ForeignStore(StorageUnavailable):
    """The store is available, but is not the one in which this database has its results."""

    def __init__(self, detail: str) -> None:
        super().__init__("misconfigured", detail)


class ObjectsLeft(StorageUnavailable):
    """Some objects could not be deleted, for `reasons` by their keys; the others were deleted."""

    def __init__(self, reasons: Mapping[str, StorageUnavailable]) -> None:
        """Tell the first of the `reasons`."""
        first = next(iter(reasons.values()))
        super().__init__(first.fault, first.detail)
        self.reasons = reasons


class LayerCount(msgspec.Struct, frozen=True):
    """A layer of the input and its number of features."""

    layer: str
    features: int


class Rejection(GeomillError):
    """The request is valid, but this file cannot be converted."""


class LimitRefusal(Rejection):
    """A plan limit, the wallet, access or a payment past due refused the file (interface 7.2)."""

    def __init__(
        self, message: str, *, limit: Limit | None, needs_upgrade: bool = False, payment_past_due: bool = False
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.needs_upgrade = needs_upgrade
        self.payment_past_due = payment_past_due


class NoRoom(Rejection):
    """A disk of the service is full, which says nothing of the file."""


class MultipleLayers(Rejection):
    """The input has several layers and the target stores one (interface 7.2)."""

    def __init__(self, message: str, *, target_format: str, layers: Sequence[LayerCount]) -> None:
        super().__init__(message)
        self.target_format = target_format
        self.layers = tuple(layers)
