"""Parsing of a form into events, without I/O.

Theory of operation. `multipart.PushMultipartParser` finds the boundaries and the part headers, in linear time on any
input, with one copy at most, and requires the closing boundary. This module adds three things. It skips the preamble,
up to a maximum, so that the division into chunks does not matter and a body that is not a form fails within its first
kilobytes. It decides what a part is by its name alone, whether or not the client sent a file name: `file_field` yields
its bytes as they arrive, every other part is collected into a text of limited length. And it turns the parser's errors
into messages for the client.

A boundary starts with a carriage return. While the bytes of a file arrive and the parser holds back no possible start
of a boundary, a chunk without a carriage return bypasses the parser: searching for one byte is several times as fast.
"""

from collections.abc import Sequence

import msgspec
from multipart import MultipartError, MultipartSegment, ParserError, PushMultipartParser

from service.errors import MalformedRequest
from service.intake.headers import read_disposition

MAX_PREAMBLE_BYTES = 4096
MAX_HEADER_BYTES = 8192
MAX_HEADERS = 16
MAX_FIELD_NAME_CHARACTERS = 100

_TEXT_CHARSETS = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "latin1", "windows-1252"})
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})
_MALFORMED = "The multipart body is malformed. Let the HTTP client build it, with a boundary of its own."
_EXPLANATIONS = {
    "Unexpected end of multipart stream (parser closed)": (
        "The multipart body ends before its closing boundary; the upload was cut off. Send it again."
    ),
    "Unexpected bytes after boundary": (
        "The boundary occurs inside a part of the multipart body. Let the HTTP client choose the boundary."
    ),
    "Maximum segment count exceeded": "The form has too many parts.",
    "Maximum segment header length exceeded": "A part of the form has a header line that is too long.",
    "Maximum segment header count exceeded": "A part of the form has too many headers.",
    "Segment header failed to decode": "A part of the form has a header that is not UTF-8.",
}


class TextPart(msgspec.Struct, frozen=True):
    """A text part, complete."""

    name: str
    value: str


class FileStart(msgspec.Struct, frozen=True):
    """The file part starts; its bytes follow."""

    untrusted_name: str


class FileEnd(msgspec.Struct, frozen=True):
    """The file part is complete."""


Event = TextPart | FileStart | bytes | FileEnd
_FILE_END = FileEnd()


class FormParser:
    """Parses the chunks of one body into events."""

    def __init__(self, boundary: bytes, *, file_field: str, max_parts: int, max_field_bytes: int) -> None:
        """Prepare for one body.

        Args:
            boundary: the boundary in the Content-Type, see `headers.read_boundary`.
            file_field: name of the parts whose bytes are yielded.
            max_parts: maximum number of parts.
            max_field_bytes: maximum length of any other part.
        """
        self._parser = _Parser(
            boundary, max_header_size=MAX_HEADER_BYTES, max_header_count=MAX_HEADERS, max_segment_count=max_parts
        )
        self._delimiter = b"\r\n--" + boundary
        self._most_held = len(self._delimiter) + 1  # the two bytes after it say whether it is the last
        self._preamble: bytes | None = b"\r\n"
        self._file_field = file_field
        self._max_field_bytes = max_field_bytes
        self._text: _Text | None = None
        self._in_file = False
        self._holds_nothing = False

    def feed(self, data: bytes) -> Sequence[Event]:
        """Return the events that `data`, the next chunk of the body, completes.

        Raises:
            MalformedRequest: the body is not a form, is malformed, or exceeds a limit (interface 7.1).
        """
        if self._preamble is not None:
            data = self._skip_preamble(data)
        if not data:
            return ()
        if self._in_file and self._holds_nothing and b"\r" not in data:
            return (data,)
        try:
            events = [self._translate(found) for found in self._parser.parse(data)]
        except MultipartError as error:
            raise _explained(error) from error
        end = data[-self._most_held :]
        self._holds_nothing = len(end) == self._most_held and b"\r" not in end
        return [event for event in events if event is not None]

    def finish(self) -> None:
        """Declare the end of the body.

        Raises:
            MalformedRequest: the closing boundary is missing.
        """
        try:
            list(self._parser.parse(b""))
        except MultipartError as error:
            raise _explained(error) from error

    def _skip_preamble(self, data: bytes) -> bytes:
        preamble = (self._preamble or b"") + data
        cap = MAX_PREAMBLE_BYTES + len(self._delimiter)
        start = preamble.find(self._delimiter, 0, cap)
        if start >= 0:
            self._preamble = None
            return preamble[start + 2 :]
        if len(preamble) >= cap:
            raise MalformedRequest("The body does not start with the boundary in its Content-Type.")
        self._preamble = preamble
        return b""

    def _translate(self, found: MultipartSegment | bytes | None) -> Event | None:
        if isinstance(found, MultipartSegment):
            return self._begin(found)
        if found is not None:
            return self._continue(found)
        if self._text is not None:
            return self._text.field()
        self._in_file = False
        return _FILE_END

    def _begin(self, segment: MultipartSegment) -> FileStart | None:
        headers = dict(segment.headerlist)
        if headers.get("Content-Transfer-Encoding", "").strip().lower() not in _PLAIN_ENCODINGS:
            raise MalformedRequest("A part of the form has a Content-Transfer-Encoding. Send its bytes unencoded.")
        name, untrusted_name = read_disposition(headers["Content-Disposition"])
        if len(name) > MAX_FIELD_NAME_CHARACTERS:
            raise MalformedRequest(f"A field name is longer than {MAX_FIELD_NAME_CHARACTERS} characters.")
        if name != self._file_field:
            self._text = _Text(name, segment.charset, self._max_field_bytes, is_file=untrusted_name is not None)
            return None
        if untrusted_name is None:
            raise MalformedRequest(
                f'The part "{name}" has no file name; the input format is read from its extension. '
                f"With curl: -F {name}=@cities.geojson"
            )
        self._text = None
        self._in_file = True
        return FileStart(untrusted_name)

    def _continue(self, data: bytes) -> bytes | None:
        if self._text is None:
            return data
        if not self._text.add(data):
            raise MalformedRequest(self._text.complaint(self._file_field))
        return None


class _Text:
    """A text part in transit."""

    def __init__(self, name: str, charset: str | None, max_bytes: int, *, is_file: bool) -> None:
        self._name = name
        self._charset = (charset or "utf-8").lower()
        self._room = max_bytes
        self._is_file = is_file
        self._pieces: list[bytes] = []

    def add(self, data: bytes) -> bool:
        """Add `data`; return False if the part exceeds its maximum length."""
        self._room -= len(data)
        self._pieces.append(data)
        return self._room >= 0

    def complaint(self, file_field: str) -> str:
        name = ascii(self._name)
        if self._is_file:
            return f'The part {name} carries a file, but the file is expected in the part "{file_field}".'
        return f"The field {name} is too long."

    def field(self) -> TextPart:
        if self._charset not in _TEXT_CHARSETS:
            raise MalformedRequest(f"The field {self._name!a} is in an unsupported character set. Use UTF-8.")
        try:
            value = b"".join(self._pieces).decode(self._charset)
        except UnicodeDecodeError:
            raise MalformedRequest(f"The field {self._name!a} is not valid {self._charset.upper()}.") from None
        if "\0" in value:
            raise MalformedRequest(f"The field {self._name!a} holds a NUL character.")
        return TextPart(self._name, value)


class _Parser(PushMultipartParser):
    """Rejects every bare line feed in a header, not only one at the end of a chunk."""

    def _on_segment_headerline(self, line: bytes) -> None:
        if b"\n" in line:
            raise ParserError("Invalid line break in segment header")
        super()._on_segment_headerline(line)


def _explained(error: MultipartError) -> MalformedRequest:
    return MalformedRequest(_EXPLANATIONS.get(str(error.args[0]), _MALFORMED))
