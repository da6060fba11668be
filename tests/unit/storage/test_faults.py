"""A server's errors, translated into the store's exceptions."""

import anyio
import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ProfileNotFound,
    ReadTimeoutError,
    SSLError,
)

from service.errors import StorageFault, StorageUnavailable
from service.storage.faults import within

URL = "https://s3.example/bucket"


def answer(code: str, status: int) -> ClientError:
    """The exception for a response with this code and status."""
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


def translated(error: Exception) -> StorageUnavailable:
    """Raise the exception inside the translation, and return the result."""
    with pytest.raises(StorageUnavailable) as caught, within(10):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("AccessDenied", 403, "denied"),
        ("SignatureDoesNotMatch", 403, "denied"),
        ("RequestTimeTooSkewed", 403, "denied"),
        ("ExpiredToken", 400, "denied"),
        ("SomethingElse", 403, "denied"),
        ("QuotaExceeded", 403, "full"),
        ("XMinioStorageFull", 507, "full"),
        ("SomethingElse", 507, "full"),
        ("SlowDown", 503, "slow"),
        ("RequestTimeout", 400, "slow"),
        ("503", 503, "slow"),
        ("NoSuchBucket", 404, "misconfigured"),
        ("404", 404, "misconfigured"),
        ("PermanentRedirect", 301, "misconfigured"),
        ("NoSuchUpload", 404, "down"),
        ("InternalError", 500, "down"),
    ],
)
async def test_an_answer_is_sorted_by_its_code_then_by_its_status(code: str, status: int, fault: StorageFault) -> None:
    """Most servers share codes; for a server's own codes, the status decides."""
    unavailable = translated(answer(code, status))
    assert unavailable.fault == fault
    assert unavailable.detail == f"the server answered {code} (HTTP {status})"


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (EndpointConnectionError(endpoint_url=URL, error="refused"), "down"),
        (ConnectionClosedError(endpoint_url=URL), "down"),
        (SSLError(endpoint_url=URL, error="certificate"), "down"),
        (ConnectTimeoutError(endpoint_url=URL), "slow"),
        (ReadTimeoutError(endpoint_url=URL), "slow"),
        (NoCredentialsError(), "denied"),
        (CredentialRetrievalError(provider="role", error_msg="gone"), "denied"),
        (ProfileNotFound(profile="none"), "misconfigured"),
    ],
)
async def test_trouble_on_the_way_is_sorted_by_its_kind(error: BotoCoreError, fault: StorageFault) -> None:
    """Requests that never reached the server become the same exceptions."""
    assert translated(error).fault == fault


async def test_what_takes_too_long_is_slow() -> None:
    """The time limit includes all retries."""
    with pytest.raises(StorageUnavailable) as caught, within(0.01):
        await anyio.sleep(60)
    assert caught.value.fault == "slow"


async def test_the_caller_hears_nothing_of_the_server() -> None:
    """Address, bucket and code are for the operator."""
    assert "s3.example" not in translated(EndpointConnectionError(endpoint_url=URL)).message


async def test_a_defect_of_ours_stays_one() -> None:
    """An invalid request is not the store's fault."""
    with pytest.raises(ParamValidationError), within(10):
        raise ParamValidationError(report="no key")
