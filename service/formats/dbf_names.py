"""The column names that a Shapefile can hold: 10 bytes of UTF-8 each, unique without regard to case.

The names are made here, before anything is written, so that the data-loss report and the file cannot differ.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import count

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
    return numbered(short, NAME_BYTES, 1, blanks=" ")


def numbered(names: Sequence[str], limit_bytes: int, first: int, *, blanks: str = "") -> tuple[str, ...]:
    """`names` made distinct without regard to case: one that is taken gets a number at its end, from `first` on.

    The number takes the place of what is beyond `limit_bytes`, and of `blanks` before that. It makes no other of
    `names`.
    """
    used = set(map(str.casefold, names))
    if len(used) == len(names):
        return tuple(names)
    seen: set[str] = set()
    following: dict[tuple[str, int], int] = {}
    """The next number to try, by what precedes it and its digits: trying all again takes seconds for thousands."""

    def claim(name: str) -> str:
        candidate = name
        for digits in count(1) if name.casefold() in seen else ():
            start = clip(name, limit_bytes - 1 - digits).rstrip(blanks)
            key = start.casefold(), digits
            untried = range(following.get(key, max(first, 10 ** (digits - 1))), 10**digits)
            number = next((number for number in untried if f"{start}_{number}".casefold() not in used), 10**digits)
            following[key] = number + 1
            candidate = f"{start}_{number}"
            if number in untried:
                break
        seen.add(candidate.casefold())
        used.add(candidate.casefold())
        return candidate

    return tuple(map(claim, names))
