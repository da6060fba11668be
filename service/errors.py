"""Every error that a caller can meet, in two families that never mix (interface 7.1).

GeomillError
├── RequestFault                the request itself is wrong: problem+json, one status and code each
│   ├── MissingApiKey
│   ├── InvalidApiKey
│   ├── InvalidIdentity         a gateway's word for the caller that cannot be believed
│   ├── MalformedRequest
│   ├── HeadersTooLarge
│   ├── InvalidParameter        names the parameter
│   ├── TooManyFiles
│   ├── UploadTooLarge
│   ├── BatchTooLarge
│   ├── UploadTimeout           the body stopped arriving, or arrives too slowly
│   ├── JobNotFound
│   ├── DownloadRefused         an unsigned, forged or altered download link
│   ├── DownloadExpired
│   ├── RangeNotSatisfiable     carries the size that the result has
│   ├── NotFound
│   ├── IdempotencyKeyReused
│   ├── IdempotencyKeyInUse     ┐
│   ├── TooManyRequests         ├ carry retry_after_seconds
│   └── Overloaded              ┘
│       └── DatabaseUnavailable the same answer; the operator's log has the cause
├── StorageUnavailable          the store of results is at fault, nobody's request or file
└── Rejection                   this file cannot be converted: HTTP 200, success false
    ├── LimitRefusal            a plan limit, the wallet, access or a payment refused it
    └── MultipleLayers          several layers, and the target stores one

A message is written for the person who sent the request: what is wrong and what to do about it, never a path,
a stack trace, SQL or a line of the converter. Which status and code a fault has is one table in `http/problems.py`.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

Limit = Literal["fileSize", "data", "conversions", "wallet", "access"]
"""The values of `limit` (interface 7)."""


class GeomillError(Exception):
    """An error with a message for the caller."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RequestFault(GeomillError):
    """The request itself is wrong, or cannot be taken now."""


class MissingApiKey(RequestFault):
    """The header X-API-Key is absent."""


class InvalidApiKey(RequestFault):
    """The key is unknown or revoked."""


class InvalidIdentity(RequestFault):
    """The header X-Geomill-Identity is forged, altered, too old, or names no account."""


class MalformedRequest(RequestFault):
    """The body is not the multipart form that the endpoint expects."""


class HeadersTooLarge(RequestFault):
    """The head of the request is longer than the service reads."""


class InvalidParameter(RequestFault):
    """A field or query parameter has a value of the wrong kind."""

    def __init__(self, parameter: str, message: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class TooManyFiles(RequestFault):
    """A batch holds more files than one request may carry."""


class UploadTooLarge(RequestFault):
    """A single upload is above the ceiling of the service."""


class BatchTooLarge(RequestFault):
    """A batch's body is above the ceiling of the service."""


class UploadTimeout(RequestFault):
    """The body stopped arriving or arrives too slowly."""


class JobNotFound(RequestFault):
    """No such job, or not the caller's."""


class DownloadRefused(RequestFault):
    """A download link that this service did not sign, or not like this."""


class DownloadExpired(RequestFault):
    """A download link past its time."""


class RangeNotSatisfiable(RequestFault):
    """The header Range asks for bytes that the result does not have."""

    def __init__(self, message: str, size_bytes: int) -> None:
        super().__init__(message)
        self.size_bytes = size_bytes


class NotFound(RequestFault):
    """Nothing is at this address."""


class IdempotencyKeyReused(RequestFault):
    """The same Idempotency-Key came with another file or other fields."""


class RetryableFault(RequestFault):
    """The same request may succeed later."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class IdempotencyKeyInUse(RetryableFault):
    """The first request with this Idempotency-Key still runs, or another has taken the key over meanwhile."""

    def __init__(self) -> None:
        super().__init__(
            "The first request with this Idempotency-Key is still being worked on. Ask again in a moment.",
            retry_after_seconds=2,
        )


class TooManyRequests(RetryableFault):
    """One account sends too much at once."""


class Overloaded(RetryableFault):
    """The service is saturated or draining."""


class DatabaseUnavailable(Overloaded):
    """PostgreSQL cannot be reached or does not answer in time (interface 7.1: the answer is that of `Overloaded`)."""


StorageFault = Literal["down", "slow", "full", "denied", "misconfigured"]
"""What is wrong with the store, for the log and for whoever runs the service."""


class StorageUnavailable(GeomillError):
    """The store of results cannot be used; the conversion that needed it fails and counts as nothing.

    `message` is for the caller; `fault` and `detail` are for the operator and never part of an answer.
    """

    def __init__(self, fault: StorageFault, detail: str) -> None:
        super().__init__("Results cannot be stored at the moment. Nothing was counted; try again in a few minutes.")
        self.fault = fault
        self.detail = detail


class LayerCount(msgspec.Struct, frozen=True):
    """A layer of the input and how many features it holds."""

    layer: str
    features: int


class Rejection(GeomillError):
    """This file cannot be converted; the request was fine."""


class LimitRefusal(Rejection):
    """A limit of the plan, the wallet, access or a payment refused the file (interface 7)."""

    def __init__(
        self,
        message: str,
        *,
        limit: Limit | None,
        needs_upgrade: bool = False,
        payment_past_due: bool = False,
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.needs_upgrade = needs_upgrade
        self.payment_past_due = payment_past_due


class MultipleLayers(Rejection):
    """The input holds several layers and the target stores one (interface 7)."""

    def __init__(self, message: str, *, target_format: str, layers: Sequence[LayerCount]) -> None:
        super().__init__(message)
        self.target_format = target_format
        self.layers = tuple(layers)
