"""The receive buffer of a connection, from which h11's readers read.

**Strict.** Servers and gateways interpret unusual headers differently, which allows one request to be hidden in
another. The buffer therefore refuses everything that RFC 9112 lets recipients tolerate: lines that end in a bare line
feed, folded lines, control characters, chunk extensions. `head.py` refuses ambiguous fields.

**Cheap.** A piece of a body is returned as the same object that was received. Pieces are joined only when something
other than a body is parsed, or when a piece must be divided. Otherwise a body of a gigabyte would be copied twice.
"""

import re
from typing import Self

import h11

from service.errors import HeadersTooLarge, MalformedRequest, RequestFault

_LONGEST_CHUNK_LINE = 18
"""Sixteen hexadecimal digits and the line end."""
_TEXT = rb"[^\x00-\x08\n-\x1f\x7f]*+"
_USUAL = re.compile(rb"(?:(?<=\r)\n)?+%s(?:\r\n(?![ \t])%s)*+\r?" % (_TEXT, _TEXT))
"""Lines that are not folded and end in CRLF, without control characters; the first and the last may be incomplete.

A search for what is unusual instead takes six times as long, because it tries each alternative at each byte.
"""
_CHUNK_LINE = re.compile(rb"[0-9A-Fa-f]{1,16}\r\n")

TOO_LONG = HeadersTooLarge("The request header is too long. Send fewer header fields.")


class Refused(h11.RemoteProtocolError):
    """The request is not read any further; `fault` gives the reason."""

    def __init__(self, fault: RequestFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Inbox:
    """A queue of bytes with the methods that h11's readers expect of their buffer.

    Raises:
        Refused: by every method that reads lines, for input that is ambiguous or too long.
    """

    def __init__(self, most_head_bytes: int) -> None:
        self._most_head_bytes = most_head_bytes
        self._data = bytearray()
        self._piece = b""
        self._searched = 0

    def __iadd__(self, data: bytes | bytearray) -> Self:
        if self or type(data) is not bytes:
            self._join()
            self._data += data
        else:
            self._piece = data
        return self

    def __len__(self) -> int:
        return len(self._data) + len(self._piece)

    def __bytes__(self) -> bytes:
        return bytes(self._data) + self._piece

    def maybe_extract_at_most(self, count: int) -> bytes | bytearray | None:
        """Remove and return up to `count` bytes; None if there are none."""
        piece = self._piece
        if piece and len(piece) <= count:
            self._piece = b""
            return piece
        self._join()
        return self._take(count) if self._data else None

    def maybe_extract_next_line(self) -> bytes | None:
        """Remove and return the line that starts a chunk; None if it is incomplete."""
        self._join()
        end = self._data.find(b"\n", 0, _LONGEST_CHUNK_LINE)
        if end < 0 and len(self._data) < _LONGEST_CHUNK_LINE:
            return None
        line = bytes(self._take(end + 1))
        if not _CHUNK_LINE.fullmatch(line):
            raise refused("A chunk of the body does not start with its size alone. Send chunks without extensions.")
        return line

    def maybe_extract_lines(self) -> list[bytes] | None:
        """Remove and return a trailer as lines; None if its blank line has not arrived yet."""
        trailer = self.take_head()
        return None if trailer is None else trailer.split(b"\r\n")[:-2]

    def take_head(self) -> bytes | None:
        """Remove and return a header or trailer with its blank line; None if that has not arrived yet."""
        self._join()
        data = self._data
        if data.startswith(b"\r\n"):
            return bytes(self._take(2))
        end = data.find(b"\r\n\r\n", self._searched)
        if end > self._most_head_bytes or (end < 0 and len(data) > self._most_head_bytes):
            raise Refused(TOO_LONG)
        if not _USUAL.fullmatch(data, max(0, self._searched - 1), end + 2 if end >= 0 else len(data)):
            raise refused(
                "The request header has a control character, a folded line, or a line that does not end in CRLF. "
                "Send it with an HTTP client."
            )
        if end < 0:
            self._searched = max(0, len(data) - 3)
            return None
        return bytes(self._take(end + 4))

    @property
    def starts_badly(self) -> bool:
        """Whether the first byte cannot be the first of a request; only after `take_head` has returned None."""
        return self._data[:1] <= b" "

    def _take(self, count: int) -> bytearray:
        taken = self._data[:count]
        del self._data[:count]
        self._searched = 0
        return taken

    def _join(self) -> None:
        self._data += self._piece
        self._piece = b""


def refused(message: str) -> Refused:
    """The refusal of a request that is malformed."""
    return Refused(MalformedRequest(message))
