"""Presigned URLs equal botocore's byte for byte, at any time and for any credentials."""

from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from service.storage.presign import presign


class Keys(msgspec.Struct):
    """Credentials in botocore's form."""

    access_key: str
    secret_key: str
    token: str | None = None


URLS = [
    "https://bucket.s3.eu-central-1.amazonaws.com",
    "http://127.0.0.1:9000/bucket",
    "https://objects.example:443/base/bucket",
    "http://[::1]:9000/bucket",
]


class Frozen(S3SigV4QueryAuth):  # type: ignore[misc]  # botocore is untyped
    """botocore's signer, at a fixed time."""

    def __init__(self, time: str, keys: Keys, seconds: int) -> None:
        credentials = ReadOnlyCredentials(keys.access_key, keys.secret_key, keys.token)
        super().__init__(credentials, "s3", "eu-central-1", expires=seconds)
        self._time = time

    def sign(self, url: str) -> str:
        """Return `url` with botocore's signature."""
        request = AWSRequest(method="GET", url=url)
        request.context["timestamp"] = self._time
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))
        return str(request.url)


@given(
    url=st.sampled_from(URLS),
    start=st.integers(0, 4_000_000_000),
    seconds=st.integers(1, 604_800),
    token=st.none() | st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1),
    disposition=st.text(st.characters(codec="utf-8")),
)
def test_botocore_signs_the_same(url: str, start: int, seconds: int, token: str | None, disposition: str) -> None:
    """Every parameter and the signature are equal."""
    keys = Keys("access", "secret/of+tests", token)
    answer = {"response-content-disposition": disposition, "response-content-type": "application/zip"}
    ours = presign(
        url,
        "results/ab cd",
        region="eu-central-1",
        credentials=keys,
        start=start,
        seconds=seconds,
        response_headers=answer,
    )
    parts = urlsplit(ours)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    operation = AWSRequest(method="GET", url=f"{url}/results/ab%20cd", params=answer).prepare().url
    theirs = Frozen(query["X-Amz-Date"], keys, seconds).sign(operation)
    assert urlsplit(theirs).path == parts.path
    assert dict(parse_qsl(urlsplit(theirs).query, keep_blank_values=True)) == query


def test_the_example_of_the_documentation() -> None:
    """The presigned URL that Amazon S3's reference derives in full."""
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = presign(
        "https://examplebucket.s3.amazonaws.com",
        "test.txt",
        region="us-east-1",
        credentials=keys,
        start=1_369_353_600,
        seconds=86_400,
        response_headers={},
    )
    assert url.endswith("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


@pytest.mark.parametrize("url", URLS)
def test_the_address_is_the_bucket_and_the_name(url: str) -> None:
    """Nothing is inserted before the query."""
    signed = presign(
        url, "a/b", region="r", credentials=Keys("access", "secret"), start=0, seconds=1, response_headers={}
    )
    assert signed.partition("?")[0] == f"{url}/a/b"
