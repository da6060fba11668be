"""Puts files that a driver reads as they are meant in place of others."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import msgspec

from service.formats.left_out import has_match, pieces_to, written

LONGEST = 2 << 20
"""How long what lies between two ends may be without being read in pieces."""
Mend: TypeAlias = Callable[[Path, Path, Path | None], tuple[Path, str]]
"""Returns the file to read in place of one, and a warning or "". Blocking.

It is called with the file, the new one, whose directory it creates if needed, and a shorter one in which to look for
what has to be mended, if there is one. It returns the file itself if nothing has to be mended.
"""


class Mending(msgspec.Struct, frozen=True):
    """A `Mend` that replaces what a driver does not read as it is meant, and tells nothing."""

    odd: re.Pattern[bytes]
    """What finds it; a match is short."""
    new: bytes | Callable[[re.Match[bytes]], bytes]
    """What to put in its place."""
    within: bytes = b""
    """What every match contains."""
    end: bytes = b">"
    """What the pieces of a file end with, behind which no match goes on."""
    replaced: re.Pattern[bytes] | None = None
    """What is replaced in a file that has something odd, if not this itself."""

    def __call__(self, path: Path, target: Path, text: Path | None = None) -> tuple[Path, str]:
        """As `Mend`."""
        if not has_match(text or path, self.odd, self.within):
            return path, ""
        pattern = self.replaced or self.odd
        return written(target, (pattern.sub(self.new, piece) for piece in pieces_to(path, self.end, LONGEST))), ""
