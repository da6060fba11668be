"""The column names that a Shapefile can hold: 10 bytes of UTF-8 each, unique without regard to case.

The names are made here, before anything is written, so that the data-loss report and the file cannot differ.
"""

from collections.abc import Sequence
from functools import lru_cache

NAME_BYTES = 10
VALUE_BYTES = 254
EMPTY_NAME = "field"
"""The replacement for a name of which nothing is left."""


def clip(text: str, limit_bytes: int) -> str:
    """The longest prefix of whole characters of `text` within `limit_bytes` of UTF-8."""
    return text.encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")


@lru_cache(maxsize=4096)
def shortened(name: str) -> str:
    """The name that `name` has in a Shapefile before collisions are resolved (interface 2.4).

    It equals `name` when the name fits.
    """
    cleaned = name
    if ":" in name or not name.isprintable():
        cleaned = "".join("_" if character == ":" or not character.isprintable() else character for character in name)
    return clip(cleaned, NAME_BYTES).rstrip(" ") or EMPTY_NAME


def written_names(names: Sequence[str]) -> tuple[str, ...]:
    """The written name of each column of `names`, in the same order.

    A column whose shortened name is taken gets a number in place of its last letters, so that no column is lost.
    """
    short = tuple(map(shortened, names))
    kept = set(map(str.casefold, short))
    if len(kept) == len(short):
        return short
    taken: set[str] = set()
    return tuple(_claim(name, taken, kept) for name in short)


def _claim(name: str, taken: set[str], kept: set[str]) -> str:
    candidate, number = name, 0
    while candidate.casefold() in taken or (number and candidate.casefold() in kept):
        number += 1
        suffix = f"_{number}"
        candidate = clip(name, NAME_BYTES - len(suffix)).rstrip(" ") + suffix
    taken.add(candidate.casefold())
    return candidate
