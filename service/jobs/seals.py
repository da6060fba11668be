"""Seals of what the processes of a fleet tell each other of a job, as anyone who reaches the queue could tell it.

The secret is the key that admission recorded for the output: gateway and workers have it from the database, and nobody
else who can send messages has it before the job has ended.
"""

from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple


class Proof(NamedTuple):
    """What the database needs to check a seal, which it does as `is_seal` does: the digest of what was sealed."""

    digest: bytes
    seal: bytes


def seal_of(digest: bytes, secret: str) -> bytes:
    """Return the seal of what has this digest of 32 bytes; the fixed size makes it one that cannot be extended."""
    return sha256(secret.encode() + digest).digest()


def is_seal(proof: Proof, secret: str) -> bool:
    """Whether whoever made the seal had the secret, and meant what has this digest."""
    return compare_digest(seal_of(proof.digest, secret), proof.seal)
