"""Finds texts of GML beside elements, which the driver leaves out: it reads the text of an element, or those in it.

Markup in CDATA, and markup that is escaped, is a part of a text.
"""

import re
from collections.abc import Iterator

from service.formats.left_out import PIECE

LONGEST = 16 << 10
"""How much is kept of a text, or a tag, that goes on in the next piece of the document."""
FEW = 2
CDATA, CDATA_END, COMMENT_START, COMMENT_END = b"<![CDATA[", b"]]>", b"<!--", b"-->"
TEXT = b"x"
COMMENTS = re.compile(rb"(?:<!--[^-]*+(?:-(?!->)[^-]*+)*+-->)++")
OPENING = re.compile(rb"<!(?:--|\[CDATA\[)")
BEFORE_ELEMENT = re.compile(rb">\s*+[^<>\s][^<>]*+<\w")
BEHIND_ELEMENT = re.compile(rb"</[^>]{0,64}+(?:>\s*+[^<\s]|[^>])")
BEHIND_EMPTY = re.compile(rb"/>\s*+[^<\s]")
"""These three take a sixth of the time of the next one, which alone tells a tag from what looks like one's end.

What is behind a longer tag is left to that one: `[^>]` takes half of the time of `[^<>]`, but no end of its own.
"""
_TAG = rb"<(?![/!?])(?:[^<>\"']++|\"[^\"<]*+\"|'[^'<]*+')*+>"
BESIDE = re.compile(rb"(?:</[^<>]++>|" + _TAG + rb"(?:(?<=/>)|(?=[^<]*+<[^/!?])))\s*+[^<\s]")
"""A text behind an element, or between the tag of one and an element in it."""
TOLD = (
    "Texts beside elements ({:,}) were left out, as in <note>see <page>1</page></note>: an element is read as a text "
    "or as the elements in it."
)


class MixedContent:
    """Counts the texts beside elements in a GML. No byte is read more than a few times."""

    def __init__(self) -> None:
        self._count = 0
        self._end = b""
        """The end of the comment or CDATA that is open; empty if none is."""
        self._held = b""
        """What the next piece may make the beginning or the end of a comment or CDATA."""
        self._rest = b""
        """The last tags, and what is behind them."""

    def add(self, text: bytes) -> None:
        """Look at the next piece of the text."""
        for start in range(0, len(text), PIECE):
            self._look_at(self._rest + b"".join(self._plain(self._held + text[start : start + PIECE])))

    def told(self) -> list[str]:
        """What to tell of the text, which has ended."""
        count = self._count + _count(self._rest, len(self._rest))
        return [TOLD.format(count)] if count else []

    def _look_at(self, text: bytes) -> None:
        """Count in the text up to its last tag but one, of which all that matters is known."""
        last = max(text.rfind(b"<", 0, text.rfind(b"<")), 0)
        self._count += _count(text, last + FEW)
        rest = text[last:]
        self._rest = rest if len(rest) <= LONGEST else rest[: LONGEST // 2] + rest[-LONGEST // 2 :]

    def _plain(self, text: bytes) -> Iterator[bytes]:
        """The text without comments, and with letters in place of each CDATA that is not blank."""
        if self._end == COMMENT_END:
            text, self._end = COMMENT_START + text, b""
        if not self._end and CDATA not in text:  # in a fifth of the time that the comments one by one would take
            closed = text.rfind(COMMENT_END) + len(COMMENT_END)
            text = COMMENTS.sub(b"", text[:closed]) + text[closed:]
        at = 0
        while True:
            if self._end:
                found = text.find(self._end, at)
                end = found if found >= 0 else max(at, len(text) - len(self._end) + 1)
                if self._end == CDATA_END and text[at:end].strip():
                    yield TEXT
                if found < 0:
                    self._held = text[end:]
                    return
                at, self._end = found + len(self._end), b""
            opening = OPENING.search(text, at)
            if opening is None:
                begun = text.rfind(b"<", max(at, len(text) - len(CDATA)))
                end = begun if begun >= 0 and CDATA.startswith(text[begun:].replace(b"<!-", b"<!")) else len(text)
                yield text[at:end]
                self._held = text[end:]
                return
            yield text[at : opening.start()]
            at, self._end = opening.end(), CDATA_END if opening[0] == CDATA else COMMENT_END


def _count(text: bytes, end: int) -> int:
    """How many texts beside elements begin before `end`."""
    if any(found.search(text, 0, end) for found in (BEFORE_ELEMENT, BEHIND_ELEMENT, BEHIND_EMPTY)):
        return sum(1 for _ in BESIDE.finditer(text, 0, end))
    return 0
