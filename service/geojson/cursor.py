"""A position in JSON text, which advances value by value without keeping what it has passed."""

import codecs
import json
import mmap
import re
from typing import Any

import msgspec
from msgspec import Raw

from service.geojson.features import lenient_decode
from service.geojson.refusals import MAX_NESTING, Reason, Unreadable
from service.geojson.surrogates import replace_lone

FIRST_GLANCE_BYTES = 1 << 12
GLANCE_GROWTH = 8
RELEASE_BYTES = 16 << 20

SPACE = re.compile(rb"[ \t\r\n]*")
SPACE_OR_SEPARATOR = re.compile(rb"[ \t\r\n\x1e]*")
_NAME = re.compile(rb'("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_CUT_OFF_NAME = re.compile(rb'(?:"(?:[^"\\]|\\.)*(?:\\|"[ \t\r\n]*)?)?\Z', re.DOTALL)
_UNFINISHED = ("true", "false", "null", "NaN", "-Infinity", "Infinity", ".", "e+", "e-", "E+", "E-")
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_VALUE = msgspec.json.Decoder(Raw)
_DEEP = re.compile(rb"(?:[\[{][^\[\]{}]*+){%d}" % MAX_NESTING)


class Cursor:
    """A reader's position in `data`. All methods raise `Unreadable` if the text is not JSON."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data = data
        self.view = memoryview(data)
        self.position = 0
        self.was_lenient = False
        self._released = 0

    def byte(self) -> bytes:
        """The current byte; empty at the end."""
        return self.data[self.position : self.position + 1]

    def no_json(self, lines: int = 0) -> Unreadable:
        """The refusal of text that is no JSON, so many lines after the current one."""
        pieces = range(0, self.position, RELEASE_BYTES)
        before = (self.data[at : min(at + RELEASE_BYTES, self.position)].count(b"\n") for at in pieces)
        return Unreadable(Reason.NOT_JSON, 1 + sum(before) + lines)

    def skip(self, pattern: re.Pattern[bytes] = SPACE) -> None:
        """Skip what `pattern` matches."""
        match = pattern.match(self.data, self.position)
        self.position = match.end() if match else self.position

    def take(self, expected: bytes) -> None:
        """Skip one required byte and any whitespace after it."""
        if self.byte() != expected:
            raise self.no_json() if self.byte() else Unreadable(Reason.TRUNCATED)
        self.position += 1
        self.skip()

    def name(self) -> str:
        """The name of the member that starts here; advances to its value."""
        match = _NAME.match(self.data, self.position)
        if not match:
            is_cut_off = _CUT_OFF_NAME.match(self.data, self.position)
            raise Unreadable(Reason.TRUNCATED) if is_cut_off else self.no_json()
        self.position = match.end()
        text = match.group(1)
        if b"\\" not in text:
            return text_of(text[1:-1])
        return str(lenient_decode(text_of(replace_lone(text)))[0])

    def last_byte(self) -> int:
        """The position of the last byte of the value that ends here; whitespace may follow it."""
        last = self.position - 1
        while self.data[last] in b" \t\r\n":
            last -= 1
        return last

    def strict_end(self) -> int | None:
        """The end of the value that starts here, or None if it is not strict JSON.

        The decoder reveals the end of a value in its error about the text that follows.
        """
        if _DEEP.match(self.data, self.position):
            raise Unreadable(Reason.TOO_DEEP)
        try:
            _VALUE.decode(self.view[self.position :])
        except msgspec.DecodeError as error:
            trailing = _TRAILING.search(str(error))
            return self.position + int(trailing.group(1)) - 1 if trailing else None
        except RecursionError:
            raise Unreadable(Reason.TOO_DEEP) from None
        return len(self.data)

    def lenient(self) -> Any:
        """The value that starts here, decoded leniently; advances past it."""
        self.was_lenient = True
        start, size = self.position, FIRST_GLANCE_BYTES
        while True:
            is_last = start + size >= len(self.data)
            text = text_of(replace_lone(self.data[start : start + size]), is_last=is_last)
            try:
                value, length = lenient_decode(text)
            except json.JSONDecodeError as error:
                if not _is_cut_off(error, text):
                    raise self.no_json(text.count("\n", 0, error.pos)) from None
                if is_last:
                    raise Unreadable(Reason.TRUNCATED) from None
            else:
                if is_last or length < len(text):
                    self.position = start + len(text[:length].encode())
                    return value
            size *= GLANCE_GROWTH

    def pass_value(self) -> None:
        """Advance past the value that starts here."""
        end = self.strict_end()
        if end is None:
            self.lenient()
        else:
            self.position = end

    def release(self) -> None:
        """Release the memory of the text already passed; it can be read from the file again."""
        end = self.position - self.position % mmap.PAGESIZE
        if isinstance(self.data, mmap.mmap) and end - self._released >= RELEASE_BYTES:
            self.data.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end


def text_of(chunk: bytes, *, is_last: bool = True) -> str:
    """UTF-8 as text, without a truncated character at the end of a chunk that is not the last."""
    try:
        return codecs.utf_8_decode(chunk, "strict", is_last)[0]
    except UnicodeDecodeError:
        raise Unreadable(Reason.NOT_UTF8) from None


def _is_cut_off(error: json.JSONDecodeError, text: str) -> bool:
    """Whether an error only means that the text ended."""
    rest = text[error.pos :].strip()
    if error.msg.startswith("Unterminated"):
        return True
    if error.msg.startswith("Invalid \\"):
        return len(rest) <= len("uXXXX")
    return any(word.startswith(rest) for word in _UNFINISHED)
