"""API keys: their format, their verification and their accounts.

A key is `gm_`, 32 characters of randomness (190 bits) and a checksum of six. The prefix lets scanners find leaked
keys, the checksum refuses mistyped and guessed ones without asking the database. Stored is only the SHA-256: with
190 random bits a slow hash would protect nothing more.
"""

import hashlib
import secrets
import string
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

import msgspec

from service.clock import Clock
from service.db.batching import Batcher
from service.db.pool import Database
from service.db.queries import load
from service.errors import InvalidApiKey, InvalidIdentity, MissingApiKey
from service.ids import AccountId, KeyId

_SQL = load("accounts")
_ALPHABET = string.digits + string.ascii_letters
_PREFIX = "gm_"
_RANDOM_LENGTH = 32
_CHECKSUM_LENGTH = 6
_LENGTH = len(_PREFIX) + _RANDOM_LENGTH + _CHECKSUM_LENGTH

CACHE_LIFETIME = timedelta(seconds=3)
"""How long a lookup is cached: all processes refuse a revoked key within five seconds."""
CACHE_SIZE = 10_000
MOST_LOOKUPS = 1000
"""So many that hardly any caller waits for a third group: each takes seconds while the database does not respond."""

Proof: TypeAlias = bytes | AccountId
"""What names a caller: the hash of a key, or an account that a trusted gateway names."""


class Allowance(msgspec.Struct, frozen=True):
    """What an account's plan allows in a month."""

    monthly_conversions: int
    monthly_data_bytes: int


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request and its key; there is no key if a trusted gateway identifies the caller.

    Its allowance is only for display and at most a few seconds old; admission decides. Prepaid credit has none.
    """

    account_id: AccountId
    key_id: KeyId | None
    allowance: Allowance | None


def new_key() -> str:
    """Create a key; it is shown to its owner once and never stored."""
    body = _PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM_LENGTH))
    return body + _checksum(body)


def hash_key(key: str) -> bytes:
    """Return the 32-byte hash under which a key is stored."""
    return hashlib.sha256(key.encode()).digest()


def is_well_formed(key: str) -> bool:
    """Return whether `key` is well-formed: prefix, length and checksum."""
    return (
        len(key) == _LENGTH
        and key.isascii()
        and key.startswith(_PREFIX)
        and secrets.compare_digest(key[-_CHECKSUM_LENGTH:], _checksum(key[:-_CHECKSUM_LENGTH]))
    )


def _checksum(body: str) -> str:
    number = zlib.crc32(body.encode())
    digits = []
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(digits)


def _caller_from(row: Mapping[str, Any]) -> Caller:
    has_plan = row["monthly_conversions"] is not None
    allowance = Allowance(row["monthly_conversions"], row["monthly_data_bytes"]) if has_plan else None
    return Caller(row["account_id"], row["key_id"], allowance)


class Authenticator:
    """Finds the caller with a key, and caches the result for a few seconds.

    Callers that come at once are looked up together: when a flood of many accounts begins, a statement for each would
    make all other requests wait for a connection to the database.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: OrderedDict[Proof, tuple[datetime, Caller | None]] = OrderedDict()
        self._keys = Batcher(partial(self._look_up, "find_keys"), MOST_LOOKUPS)
        self._accounts = Batcher(partial(self._look_up, "find_callers"), MOST_LOOKUPS)

    async def authenticate(self, key: str | None) -> Caller:
        """Return the caller with this key (interface 5).

        Raises:
            MissingApiKey: there is no key.
            InvalidApiKey: it is unknown or revoked.
        """
        if not key:
            raise MissingApiKey("The header X-API-Key is missing. Send your API key in it.")
        proof = hash_key(key)
        is_plausible = proof in self._known or is_well_formed(key)  # only well-formed keys have been looked up
        caller = await self._find(proof, self._keys) if is_plausible else None
        if caller is None:
            raise InvalidApiKey("The API key is not valid: it is unknown or revoked. Check the header X-API-Key.")
        return caller

    def recall(self, key: str) -> Caller | None:
        """Return the caller of the last lookup of this key, without a new lookup: this authenticates nobody."""
        remembered = self._known.get(hash_key(key))
        return None if remembered is None else remembered[1]

    async def identify(self, account_id: AccountId) -> Caller:
        """Return the caller that a trusted gateway names.

        Raises:
            InvalidIdentity: there is no such account.
        """
        caller = await self._find(account_id, self._accounts)
        if caller is None:
            raise InvalidIdentity("The gateway in front names an account that does not exist. Contact its operator.")
        return caller

    async def _find(self, proof: Proof, lookups: Batcher[Proof, Caller | None]) -> Caller | None:
        now = self._clock()
        remembered = self._known.get(proof)
        if remembered is not None and remembered[0] > now:
            return remembered[1]
        caller = await lookups.submit(proof)
        self._remember(proof, now + CACHE_LIFETIME, caller)
        return caller

    async def _look_up(self, statement: str, proofs: Sequence[Proof]) -> list[Caller | None]:
        rows = await self._database.fetch(_SQL[statement], proofs)
        callers = {row["proof"]: _caller_from(dict(row)) for row in rows}
        return [callers.get(proof) for proof in proofs]

    def _remember(self, proof: Proof, until: datetime, caller: Caller | None) -> None:
        self._known[proof] = (until, caller)
        self._known.move_to_end(proof)
        if len(self._known) > CACHE_SIZE:
            self._known.popitem(last=False)
