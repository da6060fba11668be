"""Signature Version 4 in the query string: a URL that lets its holder GET one object. Pure, no I/O.

botocore does the same at 20 times the cost, which a list of 100 jobs would spend on the event loop, and with the host's
clock. A test compares the signatures, which must be identical.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import quote, urlsplit

ALGORITHM = "AWS4-HMAC-SHA256"

_DEFAULT_PORTS = {"https": ":443", "http": ":80"}


class Credentials(Protocol):
    """The credentials to sign with; `token` is set for temporary credentials."""

    access_key: str
    secret_key: str
    token: str | None


def presign(
    bucket_url: str,
    name: str,
    *,
    region: str,
    credentials: Credentials,
    start: int,
    seconds: int,
    response_headers: Mapping[str, str],
) -> str:
    """Return the URL from which the object `name` can be downloaded for `seconds` from `start` (Unix time) on.

    `response_headers` has the query parameters that set headers of the response, such as `response-content-type`.
    """
    time = datetime.fromtimestamp(start, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{time[:8]}/{region}/s3/aws4_request"
    query = {
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.access_key}/{scope}",
        "X-Amz-Date": time,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
        **({"X-Amz-Security-Token": credentials.token} if credentials.token else {}),
        **response_headers,
    }
    encoded = "&".join(f"{key}={quote(value, safe='')}" for key, value in sorted(query.items()))
    parts = urlsplit(bucket_url)
    path = f"{parts.path}/{quote(name)}"
    host = parts.netloc.lower().removesuffix(_DEFAULT_PORTS[parts.scheme])
    request = f"GET\n{path}\n{encoded}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(request.encode()).hexdigest()
    signature = _sign(_signing_key(credentials.secret_key, scope), f"{ALGORITHM}\n{time}\n{scope}\n{digest}").hex()
    return f"{parts.scheme}://{parts.netloc}{path}?{encoded}&X-Amz-Signature={signature}"


def _signing_key(secret_key: str, scope: str) -> bytes:
    key = f"AWS4{secret_key}".encode()
    for step in scope.split("/"):
        key = _sign(key, step)
    return key


def _sign(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
