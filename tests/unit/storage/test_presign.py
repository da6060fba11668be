"""Signatures of URLs and requests equal botocore's byte for byte, at any time and for any credentials."""

from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from service.storage.presign import DEFAULT_PORTS, UNSIGNED, authorize, presign


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


class FrozenHeader(S3SigV4Auth):  # type: ignore[misc]  # botocore is untyped
    """botocore's signer of requests, at a fixed time, of bodies whose hash is given."""

    def __init__(self, time: str, keys: Keys, content_hash: str) -> None:
        super().__init__(ReadOnlyCredentials(keys.access_key, keys.secret_key, keys.token), "s3", "eu-central-1")
        self._time = time
        self._content_hash = content_hash

    def payload(self, _request: AWSRequest) -> str:
        return self._content_hash

    def sign(self, url: str, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers with botocore's signature."""
        request = AWSRequest(method="PUT", url=url, headers=headers)
        request.context["timestamp"] = self._time
        self._modify_request_before_signing(request)
        text = self.string_to_sign(request, self.canonical_request(request))
        self._inject_signature_to_request(request, self.signature(text, request))
        return {name.lower(): value for name, value in request.headers.items()}


@given(
    url=st.sampled_from(URLS),
    start=st.integers(0, 4_000_000_000),
    token=st.none() | st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1),
    key=st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Zs"]), min_size=1),
    disposition=st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), min_size=1),
    content_hash=st.sampled_from([UNSIGNED, "0" * 64]),
    key_id=st.none() | st.just("arn:aws:kms:eu-central-1:1:key/2"),
)
def test_botocore_signs_requests_the_same(  # noqa: PLR0917 -- hypothesis passes them by name
    url: str, start: int, token: str | None, key: str, disposition: str, content_hash: str, key_id: str | None
) -> None:
    """All headers are equal, whatever blanks there are in them."""
    keys = Keys("access", "secret/of+tests", token)
    given = {"Content-Type": "application/zip", "Content-Disposition": f"attachment; {disposition}"}
    given |= {"x-amz-server-side-encryption-aws-kms-key-id": key_id} if key_id else {}
    parts = urlsplit(f"{url}/{quote(key, safe='/~')}")
    ours = authorize(
        "PUT",
        parts.netloc.removesuffix(DEFAULT_PORTS[parts.scheme]),
        parts.path,
        given,
        content_hash,
        region="eu-central-1",
        credentials=keys,
        start=start,
    )
    theirs = FrozenHeader(ours["X-Amz-Date"], keys, content_hash).sign(parts.geturl(), given)
    assert {name.lower(): value for name, value in ours.items()} == theirs


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
