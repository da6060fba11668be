"""Translation of the clients' exceptions into `StorageUnavailable`; no other module catches them."""

from types import TracebackType, UnionType

from aiohttp import ClientPayloadError
from anyio import CancelScope, current_time
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


class within:  # noqa: N801 - used like a function
    """Limit the requests in the block to `seconds` in total, including retries, and translate their errors.

    Raises:
        StorageUnavailable: one of them failed, or they took too long.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._scope = CancelScope(deadline=current_time() + seconds)

    def __enter__(self) -> None:
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_over = self._scope.__exit__(kind, error, trace)
        if is_over or isinstance(error, TimeoutError):
            reason = f"the server did not respond within {self._seconds:.0f} s"
            raise StorageUnavailable("slow", reason) from None
        if isinstance(error, Exception) and (unavailable := _translated(error)) is not None:
            raise unavailable from error


def _translated(error: Exception) -> StorageUnavailable | None:
    if isinstance(error, exceptions.ParamValidationError):
        return None  # a defect in Geomill
    if isinstance(error, exceptions.ClientError):
        status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        return refusal(str(error.response["Error"]["Code"]), status)
    if isinstance(error, exceptions.BotoCoreError):
        return StorageUnavailable(next(fault for kind, fault in _BY_CLASS if isinstance(error, kind)), str(error))
    if isinstance(error, ClientPayloadError):  # aiobotocore has no exception of its own for an answer that breaks off
        return StorageUnavailable("down", f"the answer broke off: {error}")
    return None


def refusal(code: str, status: int) -> StorageUnavailable:
    """Return the error for a response of the server with this S3 error code and HTTP status."""
    fault = _BY_CODE.get(code) or _BY_CODE.get(str(status), "down")
    kind = ObjectMissing if code == "NoSuchKey" else StorageUnavailable
    return kind(fault, f"the server answered {code} (HTTP {status})")
