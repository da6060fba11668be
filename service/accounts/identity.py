"""The identity header of a trusted gateway, which has authenticated the client and names its account.

The header X-Geomill-Identity is `account=<account id>,time=<Unix seconds>,v1=<signature>`, where the signature is the
HMAC-SHA256, in hexadecimal, of five lines joined by line feeds: `v1`, the account id, the time, the method and the path
below the root path, all as sent. It is valid for one method and path, and for a few seconds.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from service.errors import InvalidIdentity
from service.ids import AccountId
from service.settings import SettingsError

MIN_CHARACTERS = 32
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_FORM = re.compile(rf"account=({_UUID}),time=([0-9]{{1,12}}),v1=([0-9a-f]{{64}})", re.ASCII)
_REFUSED = "The header X-Geomill-Identity is not valid. It comes from the gateway in front; ask its operator."


def parse_identity_secrets(text: str) -> tuple[bytes, ...]:
    """Split `text` at commas into secrets, all of which are accepted; empty if `text` is.

    Raises:
        SettingsError: a secret is too short.
    """
    found = tuple(text.replace(",", " ").split())
    if any(len(secret) < MIN_CHARACTERS for secret in found):
        raise SettingsError(
            f"GEOMILL_IDENTITY_SECRET needs {MIN_CHARACTERS} characters or more for each secret; "
            "separate several by commas."
        )
    return tuple(secret.encode() for secret in found)


def sign_identity(secret: bytes, account_id: str, unix_seconds: str, method: str, path: str) -> str:
    """Return the signature of an identity, as gateways compute it."""
    message = f"v1\n{account_id}\n{unix_seconds}\n{method}\n{path}"
    return hmac.new(secret, message.encode(), hashlib.sha256).hexdigest()


class TrustedGateway:
    """Accepts identities signed with one of its secrets, for a limited time."""

    def __init__(self, secrets: Sequence[bytes], seconds: float) -> None:
        self._secrets = tuple(secrets)
        self._seconds = seconds

    @property
    def exists(self) -> bool:
        """Whether a trusted gateway is configured."""
        return bool(self._secrets)

    def verify(self, identities: Sequence[str], method: str, path: str, now: datetime) -> AccountId:
        """Return the account that the header of a request names.

        Raises:
            InvalidIdentity: there are several headers, or it is forged, altered, for another request, or too old.
        """
        parts = _FORM.fullmatch(identities[0]) if len(identities) == 1 else None
        if parts is None or not self._is_signed(parts, method, path):
            raise InvalidIdentity(_REFUSED)
        if abs(now.timestamp() - int(parts[2])) > self._seconds:
            raise InvalidIdentity("The header X-Geomill-Identity is too old, or its clock is wrong. Send a new one.")
        return AccountId(UUID(parts[1]))

    def _is_signed(self, parts: re.Match[str], method: str, path: str) -> bool:
        expected = (sign_identity(secret, parts[1], parts[2], method, path) for secret in self._secrets)
        return any(hmac.compare_digest(parts[3], signature) for signature in expected)
