"""Translation of the clients' exceptions into `StorageUnavailable`; no other module catches them."""

from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import ClientPayloadError
from anyio import fail_after
from botocore import exceptions
from botocore.exceptions import ConnectionError as UnreachableError

from service.errors import ObjectMissing, StorageFault, StorageUnavailable

_BY_CODE: dict[str, StorageFault] = {
    "AccessDenied": "denied",
    "AccountProblem": "denied",
    "ExpiredToken": "denied",
    "InvalidAccessKeyId": "denied",
    "InvalidToken": "denied",
    "RequestTimeTooSkewed": "denied",
    "SignatureDoesNotMatch": "denied",
    "EntityTooLarge": "full",
    "InsufficientStorage": "full",
    "QuotaExceeded": "full",
    "XMinioStorageFull": "full",
    "RequestTimeout": "slow",
    "SlowDown": "slow",
    "NoSuchUpload": "down",
    "AuthorizationHeaderMalformed": "misconfigured",
    "InvalidBucketName": "misconfigured",
    "NoSuchBucket": "misconfigured",
    "PermanentRedirect": "misconfigured",
}

_BY_STATUS: dict[int, StorageFault] = {
    301: "misconfigured",
    400: "misconfigured",
    401: "denied",
    403: "denied",
    404: "misconfigured",
    429: "slow",
    503: "slow",
    507: "full",
}

_BY_CLASS: tuple[tuple[type[exceptions.BotoCoreError], StorageFault], ...] = (
    (exceptions.ConnectTimeoutError, "slow"),
    (exceptions.ReadTimeoutError, "slow"),
    (UnreachableError, "down"),
    (exceptions.HTTPClientError, "down"),
    (exceptions.CredentialRetrievalError, "denied"),
    (exceptions.NoCredentialsError, "denied"),
    (exceptions.PartialCredentialsError, "denied"),
    (exceptions.TokenRetrievalError, "denied"),
    (exceptions.BotoCoreError, "misconfigured"),
)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Limit the requests in the block to `seconds` in total, including retries, and translate their errors."""
    try:
        with fail_after(seconds):
            yield
    except exceptions.ParamValidationError:
        raise  # a defect in Geomill
    except exceptions.ClientError as error:
        status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        raise refusal(str(error.response["Error"]["Code"]), status) from error
    except exceptions.BotoCoreError as error:
        fault = next(fault for kind, fault in _BY_CLASS if isinstance(error, kind))
        raise StorageUnavailable(fault, str(error)) from error
    except ClientPayloadError as error:  # aiobotocore has no exception of its own for an answer that breaks off
        raise StorageUnavailable("down", f"the answer broke off: {error}") from error
    except TimeoutError:
        raise StorageUnavailable("slow", f"the server did not respond within {seconds:.0f} s") from None


def refusal(code: str, status: int) -> StorageUnavailable:
    """Return the error for a response of the server with this S3 error code and HTTP status."""
    fault = _BY_CODE.get(code) or _BY_STATUS.get(status, "down")
    kind = ObjectMissing if code == "NoSuchKey" else StorageUnavailable
    return kind(fault, f"the server answered {code} (HTTP {status})")
