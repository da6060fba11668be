"""What has come in over a connection and was not read yet: it takes the place of h11's own buffer.

**Strict.** Servers and gateways disagree about what a head says when it is written in an unusual way, and where they
disagree a request can be hidden in another one. So whatever RFC 9112 leaves to the tolerance of its reader is refused:
lines that end in a bare line feed, folded lines, control characters, framing fields that are there twice, both ways of
framing at once, chunk extensions.

**Cheap.** A piece of a body is given away as the object that it came in. It joins the rest as soon as anything but a
body is looked for, or it has to be divided. A body of a gigabyte would otherwise be copied twice.
"""

import re
from typing import Self

import h11

from service.errors import HeadersTooLarge, MalformedRequest, RequestFault

_LONGEST_CHUNK_LINE = 18
"""Sixteen hexadecimal digits and the end of the line."""
_UNUSUAL = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\r\n[ \t]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CHUNK_LINE = re.compile(rb"[0-9A-Fa-f]{1,16}\r\n")
_HOST = re.compile(rb"(?:[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_HOST_FIELD, _LENGTH, _ENCODING = b"host", b"content-length", b"transfer-encoding"
_ONCE = frozenset({_HOST_FIELD, _LENGTH, _ENCODING})

TOO_LONG = HeadersTooLarge("The head of the request is longer than the service reads. Send fewer headers.")


class Refused(h11.RemoteProtocolError):
    """A request that is not read any further; `fault` says why."""

    def __init__(self, fault: RequestFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Inbox:
    """Bytes in their order; the methods are what h11 asks of its buffer.

    Raises:
        Refused: from every method that reads lines, for what can be read in two ways or is too long.
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
        """Take up to `count` bytes off the beginning, None where there are none."""
        piece = self._piece
        if piece and len(piece) <= count:
            self._piece = b""
            return piece
        self._join()
        return self._take(count) if self._data else None

    def maybe_extract_next_line(self) -> bytes | None:
        """Take the line that begins a chunk off, None where its end is not there yet."""
        self._join()
        end = self._data.find(b"\n", 0, _LONGEST_CHUNK_LINE)
        if end < 0 and len(self._data) < _LONGEST_CHUNK_LINE:
            return None
        line = bytes(self._take(end + 1))
        if not _CHUNK_LINE.fullmatch(line):
            raise _refused("A chunk of the body begins with more than its size, or with none. Send its size alone.")
        return line

    def maybe_extract_lines(self) -> list[bytes] | None:
        """Take a head, or the fields after the last chunk, off as lines; None where the blank line is not there yet."""
        self._join()
        data = self._data
        if data.startswith(b"\r\n"):
            self._take(2)
            return []
        end = data.find(b"\r\n\r\n", self._searched)
        if end > self._most_head_bytes or (end < 0 and len(data) > self._most_head_bytes):
            raise Refused(TOO_LONG)
        if _UNUSUAL.search(data, max(0, self._searched - 1), end + 2 if end >= 0 else len(data)):
            raise _refused(
                "The head of the request has a control character, a folded line, or a line that does not end in CRLF. "
                "Send it with an HTTP client."
            )
        if end < 0:
            self._searched = max(0, len(data) - 3)
            return None
        lines = bytes(self._take(end + 4)).split(b"\r\n")[:-2]
        _check_framing(lines)
        return lines

    def is_next_line_obviously_invalid_request_line(self) -> bool:
        """Whether nobody needs to wait for the end of the first line."""
        self._join()
        return bool(self._data) and self._data[0] <= ord(" ")

    def _take(self, count: int) -> bytearray:
        taken = self._data[:count]
        del self._data[:count]
        self._searched = 0
        return taken

    def _join(self) -> None:
        self._data += self._piece
        self._piece = b""


def _refused(message: str) -> Refused:
    return Refused(MalformedRequest(message))


def _check_framing(lines: list[bytes]) -> None:
    """See that one field at most says where the body ends, in the one way that has one meaning."""
    found: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name in _ONCE:
            if name in found:
                raise _refused(f"The header {name.decode().title()} is there twice. Send it once.")
            found[name] = value.strip(b" \t")
    if _LENGTH in found and _ENCODING in found:
        raise _refused("The request has two lengths. Send Content-Length or Transfer-Encoding, not both.")
    if not found.get(_LENGTH, b"0").isdigit():
        raise _refused("The header Content-Length is not a number. Send digits alone.")
    if found.get(_ENCODING, b"chunked").lower() != b"chunked":
        raise _refused("The service knows no Transfer-Encoding but chunked. Send the body as it is.")
    if _ENCODING in found and lines[0].endswith(b"HTTP/1.0"):
        raise _refused("A request of HTTP/1.0 has no Transfer-Encoding. Send Content-Length.")
    if not _HOST.fullmatch(found.get(_HOST_FIELD, b"")):
        raise _refused("The header Host names no host. Send the name and the port of the service.")
