"""Download links of the local store, signed with HMAC-SHA256 so that nobody can change or extend them.

The signature covers everything that the response depends on: the object, its name for the client, its media type and
the expiry. It is computed over the decoded texts of the URL and compared as text, so no other spelling of a value is
valid.
"""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import parse_qsl, quote, quote_plus

import msgspec

from service.errors import DownloadExpired, DownloadRefused
from service.storage.port import ObjectKey

PREFIX = "/files"
VERSION = 1

_PARAMETERS = ["expires", "signature", "type"]

_quoted_type = lru_cache(maxsize=64)(quote_plus)


class Grant(msgspec.Struct, frozen=True):
    """The object that a link gives access to, and until which second (Unix time, exclusive)."""

    key: ObjectKey
    download_name: str
    media_type: str
    expires: int


class LinkSigner:
    """Signs with the first secret and accepts any, so that secrets can be rotated while links are in use."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._keyed = tuple(hmac.new(secret, digestmod=hashlib.sha256) for secret in secrets)

    def sign(self, grant: Grant) -> str:
        """Return the path-absolute URL that grants `grant`."""
        texts = (grant.key, grant.download_name, grant.media_type, str(grant.expires))
        path = f"{PREFIX}/{quote(grant.key)}/{quote(grant.download_name, safe='')}"
        signature = _signature(self._keyed[0], texts)  # of characters that a query may contain unescaped
        return f"{path}?type={_quoted_type(grant.media_type)}&expires={grant.expires}&signature={signature}"

    def verify(self, key: str, name: str, query: str, now: float) -> Grant:
        """Return the grant of the link with these (decoded) path segments and this query string.

        Raises:
            DownloadRefused: the link is unsigned, forged or altered.
            DownloadExpired: its signature is valid, but `now` is past its expiry.
        """
        values = _parse(query)
        texts = (key, name, values["type"], values["expires"])
        if not self._signed(texts, values["signature"]):
            raise _refused()
        grant = Grant(ObjectKey(key), name, values["type"], int(values["expires"]))
        if now >= grant.expires:
            raise _expired()
        return grant

    def _signed(self, texts: Sequence[str], signature: str) -> bool:
        given = signature.encode()
        return any(hmac.compare_digest(_signature(keyed, texts).encode(), given) for keyed in self._keyed)


def _expired() -> DownloadExpired:
    return DownloadExpired(
        "This download link has expired. Read the job again for a new one; if it is Expired, convert the file again."
    )


def _refused() -> DownloadRefused:
    return DownloadRefused(
        "This download link is not valid: it is incomplete or altered. Use downloadUrl exactly as returned."
    )


def _parse(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=8)
    except ValueError:
        raise _refused() from None
    if sorted(name for name, _ in pairs) != _PARAMETERS:
        raise _refused()
    return dict(pairs)


def _signature(keyed: hmac.HMAC, texts: Sequence[str]) -> str:
    try:
        message = msgspec.json.encode([VERSION, *texts])
    except UnicodeEncodeError:
        raise _refused() from None
    signed = keyed.copy()  # preparing a key takes longer than such a message
    signed.update(message)
    return base64.urlsafe_b64encode(signed.digest()).rstrip(b"=").decode()
