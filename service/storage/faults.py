"""Translation of the clients' exceptions into `StorageUnavailable`; no other module catches them."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import UnionType

from aiohttp import ClientPayloadError
from anyio import fail_after
from botocore import exceptions
from botocore.exceptions import ConnectionError as UnreachableError

from service.errors import ObjectMissing, StorageFault, StorageUnavailable

_CODES: dict[StorageFault, str] = {
    "denied": "AccessDenied AccountProblem ExpiredToken InvalidAccessKeyId InvalidToken RequestTimeTooSkewed "
    "SignatureDoesNotMatch 401 403",
    "full": "EntityTooLarge InsufficientStorage QuotaExceeded XMinioStorageFull 507",
    "slow": "RequestTimeout SlowDown 429 503",
    "down": "NoSuchUpload",
    "misconfigured": "AuthorizationHeaderMalformed InvalidBucketName NoSuchBucket PermanentRedirect 301 400 404",
}
"""What the error codes of S3 servers mean, and the HTTP statuses of answers with any other code."""
_BY_CODE = {code: fault for fault, codes in _CODES.items() for code in codes.split()}

_BY_CLASS: tuple[tuple[type[exceptions.BotoCoreError] | UnionType, StorageFault], ...] = (
    (exceptions.ConnectTimeoutError | exceptions.ReadTimeoutError, "slow"),
    (UnreachableError | exceptions.HTTPClientError, "down"),
    (exceptions.CredentialRetrievalError | exceptions.NoCredentialsError, "denied"),
    (exceptions.PartialCredentialsError | exceptions.TokenRetrievalError, "denied"),
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
    fault = _BY_CODE.get(code) or _BY_CODE.get(str(status), "down")
    kind = ObjectMissing if code == "NoSuchKey" else StorageUnavailable
    return kind(fault, f"the server answered {code} (HTTP {status})")
