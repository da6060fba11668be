"""A form's bytes as events, without I/O.

Theory of operation. `multipart.PushMultipartParser` finds the boundaries and the part headers: linear in time on any
input, one copy at most, and it insists on the closing boundary. Around it stand three things that it leaves open. The
preamble: it is skipped here, up to a cap, so that where a chunk ends changes nothing and a body that is no form fails
within its first kilobytes. The meaning of a part: its name alone decides, whether the client gave a file name or not;
`file_field` yields its bytes as they come, every other part is collected to a text under a cap. And the words: the
parser's complaints become sentences for the person who sent the request.

A boundary begins with a carriage return. What has none, while a file's bytes come and the parser keeps back none that
may begin a boundary, is passed on without it: looking for one byte is several times as fast as for a boundary.
"""

from collections.abc import Iterator

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


class Field(msgspec.Struct, frozen=True):
    """A text part, complete."""

    name: str
    value: str


class FileStart(msgspec.Struct, frozen=True):
    """The file part begins; its bytes follow."""

    untrusted_name: str


class FileEnd(msgspec.Struct, frozen=True):
    """The file part is complete."""


Event = Field | FileStart | bytes | FileEnd
_FILE_END = FileEnd()


class FormParser:
    """Turns the chunks of one body into events."""

    def __init__(self, boundary: bytes, *, file_field: str, max_parts: int, max_field_bytes: int) -> None:
        """Prepare for one body.

        Args:
            boundary: of the Content-Type, see `headers.read_boundary`.
            file_field: name of the parts whose bytes are passed on.
            max_parts: parts that the form may have.
            max_field_bytes: length that any other part may have.
        """
        self._parser = _Parser(
            boundary, max_header_size=MAX_HEADER_BYTES, max_header_count=MAX_HEADERS, max_segment_count=max_parts
        )
        self._delimiter = b"\r\n--" + boundary
        self._most_held = len(self._delimiter) + 1  # two bytes after it tell whether it is the last
        self._preamble: bytes | None = b"\r\n"
        self._file_field = file_field
        self._max_field_bytes = max_field_bytes
        self._text: _Text | None = None
        self._in_file = False
        self._holds_nothing = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what `data`, the next chunk of the body, completes; must be exhausted before the next call.

        Raises:
            MalformedRequest: the body is no form, breaks the syntax, or goes beyond a cap (interface 7.1).
        """
        if self._preamble is not None:
            data = self._skip_preamble(data)
        if self._in_file and self._holds_nothing and b"\r" not in data:
            if data:
                yield data
        elif data:
            try:
                for event in self._parser.parse(data):
                    yield from self._translate(event)
            except MultipartError as error:
                raise _explained(error) from error
            end = data[-self._most_held :]
            self._holds_nothing = len(end) == self._most_held and b"\r" not in end

    def finish(self) -> None:
        """Declare the end of the body.

        Raises:
            MalformedRequest: the closing boundary has not come.
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
            raise MalformedRequest("The body does not begin with the boundary that its Content-Type declares.")
        self._preamble = preamble
        return b""

    def _translate(self, event: MultipartSegment | bytes | None) -> Iterator[Event]:
        if isinstance(event, MultipartSegment):
            yield from self._begin(event)
        elif event is not None:
            yield from self._continue(event)
        elif self._text is None:
            self._in_file = False
            yield _FILE_END
        else:
            yield self._text.field()

    def _begin(self, segment: MultipartSegment) -> Iterator[Event]:
        headers = dict(segment.headerlist)
        if headers.get("Content-Transfer-Encoding", "").strip().lower() not in _PLAIN_ENCODINGS:
            raise MalformedRequest("A part of the form has a Content-Transfer-Encoding; send its bytes as they are.")
        name, untrusted_name = read_disposition(headers["Content-Disposition"])
        if len(name) > MAX_FIELD_NAME_CHARACTERS:
            raise MalformedRequest(f"A field name is longer than {MAX_FIELD_NAME_CHARACTERS} characters.")
        if name != self._file_field:
            self._text = _Text(name, segment.charset, self._max_field_bytes, is_file=untrusted_name is not None)
        elif untrusted_name is None:
            raise MalformedRequest(
                f'The part "{name}" has no file name; the input format is read from its extension. '
                f"With curl: -F {name}=@cities.geojson"
            )
        else:
            self._text = None
            self._in_file = True
            yield FileStart(untrusted_name)

    def _continue(self, data: bytes) -> Iterator[Event]:
        if self._text is None:
            yield data
        elif not self._text.add(data):
            raise MalformedRequest(self._text.complaint(self._file_field))


class _Text:
    """A text part on its way."""

    def __init__(self, name: str, charset: str | None, max_bytes: int, *, is_file: bool) -> None:
        self._name = name
        self._charset = (charset or "utf-8").lower()
        self._room = max_bytes
        self._is_file = is_file
        self._pieces: list[bytes] = []

    def add(self, data: bytes) -> bool:
        """Take `data`; False when the cap is passed."""
        self._room -= len(data)
        self._pieces.append(data)
        return self._room >= 0

    def complaint(self, file_field: str) -> str:
        name = ascii(self._name)
        if self._is_file:
            return f'The part {name} carries a file, and the file is expected in the part "{file_field}".'
        return f"The field {name} is too long."

    def field(self) -> Field:
        if self._charset not in _TEXT_CHARSETS:
            raise MalformedRequest(f"The field {self._name!a} is in a character set that is not taken; use UTF-8.")
        try:
            value = b"".join(self._pieces).decode(self._charset)
        except UnicodeDecodeError:
            raise MalformedRequest(f"The field {self._name!a} is not valid {self._charset.upper()}.") from None
        if "\0" in value:
            raise MalformedRequest(f"The field {self._name!a} holds a NUL character.")
        return Field(self._name, value)


class _Parser(PushMultipartParser):
    """Refuses a line feed in a header always, not only where a chunk happens to end behind it."""

    def _on_segment_headerline(self, line: bytes) -> None:
        if b"\n" in line:
            raise ParserError("Invalid line break in segment header")
        super()._on_segment_headerline(line)


def _explained(error: MultipartError) -> MalformedRequest:
    return MalformedRequest(_EXPLANATIONS.get(str(error.args[0]), _MALFORMED))
