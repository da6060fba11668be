r"""Unpaired surrogates: escapes such as \ud83d without their second half, which encode no character.

No text can hold one. The converter replaces them with U+FFFD, but also swallows a following escape. It therefore
receives documents in which they are already replaced by the escape of U+FFFD, which has the same length.
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
    """The positions of unpaired surrogates in JSON text, each after its backslash; `text` starts outside an escape."""
    if any(text.find(mark) >= 0 for mark in _MAY_BE_HALF):
        yield from (escape.start(1) for escape in _ESCAPE.finditer(text) if escape.group(1))


def replace_lone(text: bytes) -> bytes:
    """The JSON text with each unpaired surrogate replaced by U+FFFD; its length does not change."""
    whole = None
    for at in find_lone(text):
        whole = bytearray(text) if whole is None else whole
        whole[at : at + len(REPLACEMENT)] = REPLACEMENT
    return text if whole is None else bytes(whole)
