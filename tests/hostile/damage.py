"""Valid files of every format, truncated or with flipped bits, deterministically."""

import random
from collections.abc import Iterator

CUTS = (0.05, 0.3, 0.6, 0.9, 0.99)
LOST_BYTES = (1, 7)
FLIPS = ((1, "head"), (3, "head"), (1, "all"), (10, "all"), (200, "all"))
HEAD = 256
SEEDS = (1, 2)


def damaged(whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield `whole` damaged in every way, with a name for each."""
    for share in CUTS:
        yield f"cut at {share:.0%}", whole[: max(1, int(len(whole) * share))]
    for lost in LOST_BYTES:
        yield f"without its last {lost}", whole[:-lost]
    for seed in SEEDS:
        for bits, where in FLIPS:
            yield f"{bits} bits of {where} turned, seed {seed}", _turned(whole, bits, where, seed)


def _turned(whole: bytes, bits: int, where: str, seed: int) -> bytes:
    chance = random.Random(f"{seed}-{bits}-{where}")
    content = bytearray(whole)
    end = min(HEAD, len(content)) if where == "head" else len(content)
    for _ in range(bits):
        content[chance.randrange(end)] ^= 1 << chance.randrange(8)
    return bytes(content)
