r"""Halves of letters: escapes such as \ud83d without their other half, which stand for nothing.

No text can hold one. The converter puts U+FFFD in its place, but swallows the letter after it where that is an escape
too, so it is given documents in which the escape of U+FFFD, which is as long, stands there already.
"""

import mmap
import re
from collections.abc import Iterator

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_MAY_BE_HALF = (b"\\ud", b"\\uD")
REPLACEMENT = b"ufffd"


def find_lone(text: bytes | mmap.mmap) -> Iterator[int]:
    """Where in JSON text, which begins outside of an escape, the halves are: the place after each backslash."""
    if any(text.find(mark) >= 0 for mark in _MAY_BE_HALF):
        yield from (escape.start(1) for escape in _ESCAPE.finditer(text) if escape.group(1))


def replace_lone(text: bytes) -> bytes:
    """JSON text with U+FFFD in the place of each half, as long as before."""
    whole = None
    for at in find_lone(text):
        whole = bytearray(text) if whole is None else whole
        whole[at : at + len(REPLACEMENT)] = REPLACEMENT
    return text if whole is None else bytes(whole)
