"""Finds insertions of blocks that a DXF does not define, or only refers to, of which its driver makes nothing."""

import re
from collections import Counter
from collections.abc import Iterator

from service.formats.names import shown

LONGEST_MATCH = 16 << 10
MOST_NAMES = 100_000
"""How many different names are kept: a crafted file would fill the memory. Beyond them, nothing is told."""
_NAMED = (
    rb"%b[ \t\r]*+\n(?:[ \t]*+(?!2[ \t\r]*+\n)[1-9]\d{0,3}[ \t\r]*+\n[^\n]*+\n){0,40}+"
    rb"[ \t]*+2[ \t\r]*+\n[ \t]*+([^\r\n]{1,255}+)\r?\n"
)
INSERT = re.compile(_NAMED % b"INSERT")
BLOCK = re.compile(_NAMED % b"BLOCK" + rb"[ \t]*+(?:70[ \t\r]*+\n[ \t]*+(\d{1,5}+)|(?!70\D)\d++)[ \t\r]*+\n")
"""A block as far as its flags, if these follow its name. Both begin with a fixed text, which is found soon."""
_ENTITY_CODE = re.compile(rb"(?<![^\n])[ \t]*+0[ \t]*+\r?\n[ \t]*+\Z")
LONGEST_CODE = 40
EXTERNAL = 4
"""The bit of the flags of a block that says that its parts are in another file."""
UNDEFINED = (
    "Insertions of blocks that the file does not define ({count:,}), such as {example!r}, were left out: the blocks "
    "are in other files, missing, or spelled with other capitals. Bind external references, or explode the insertions, "
    "to keep them."
)


class UndefinedBlocks:
    """Compares the blocks that the text of a DXF defines with those that it inserts."""

    def __init__(self) -> None:
        self._defined: set[bytes] = set()
        self._inserted: Counter[bytes] = Counter()
        self._tail = b""

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text."""
        old, text = len(self._tail), self._tail + text
        if max(len(self._defined), len(self._inserted)) <= MOST_NAMES:
            self._defined.update(found[1].rstrip() for found in _entities(BLOCK, text) if not _is_external(found))
            inserted = (found[1].rstrip() for found in _entities(INSERT, text) if found.end() > old)
            self._inserted.update(inserted)
        self._tail = text[-LONGEST_MATCH:]

    def told(self) -> list[str]:
        """What to tell of the text, which has ended."""
        undefined = {name: count for name, count in self._inserted.items() if name not in self._defined}
        if not undefined or max(len(self._defined), len(self._inserted)) > MOST_NAMES:
            return []
        example = shown(next(iter(undefined)).decode("utf-8", "replace"))
        return [UNDEFINED.format(count=sum(undefined.values()), example=example)]


def _entities(pattern: re.Pattern[bytes], text: bytes) -> Iterator[re.Match[bytes]]:
    """The matches of `pattern` that begin with the name of an entity, which follows the code 0."""
    for found in pattern.finditer(text):
        if _ENTITY_CODE.search(text, max(0, found.start() - LONGEST_CODE), found.start()):
            yield found


def _is_external(block: re.Match[bytes]) -> bool:
    return bool(int(block[2] or 0) & EXTERNAL)
