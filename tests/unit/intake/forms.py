"""Forms for tests, fixed and random."""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from service.intake.multipart import Event, FileEnd, FileStart, FormParser

BOUNDARY = b"----geomill7MA4YWxkTrZu0gW"
FILE_FIELD = "file"
MAX_PARTS = 20
MAX_FIELD_BYTES = 2000


class Part(NamedTuple):
    """A part: a text field, or a file if it has a file name."""

    name: str
    content: bytes
    file_name: str | None = None


def build(parts: Sequence[Part], *, preamble: bytes = b"", epilogue: bytes = b"\r\n") -> bytes:
    """The body of the form with these parts."""
    pieces = [preamble, b"\r\n" if preamble else b""]
    for part in parts:
        file_name = f'; filename="{part.file_name}"' if part.file_name is not None else ""
        head = f'Content-Disposition: form-data; name="{part.name}"{file_name}\r\n\r\n'
        pieces += [b"--", BOUNDARY, b"\r\n", head.encode(), part.content, b"\r\n"]
    return b"".join([*pieces, b"--", BOUNDARY, b"--", epilogue])


def cut(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Divide `body` into chunks of `sizes`, repeatedly."""
    chunks, position, turn = [], 0, 0
    while position < len(body):
        size = sizes[turn % len(sizes)]
        chunks.append(body[position : position + size])
        position, turn = position + size, turn + 1
    return chunks


def new_parser() -> FormParser:
    """A parser for this module's forms."""
    return FormParser(BOUNDARY, file_field=FILE_FIELD, max_parts=MAX_PARTS, max_field_bytes=MAX_FIELD_BYTES)


def parse(chunks: Sequence[bytes]) -> list[Event]:
    """Parse a whole body; adjacent pieces of a file are joined, so that chunks do not show."""
    parser = new_parser()
    events: list[Event] = []
    for chunk in chunks:
        for event in parser.feed(chunk):
            if isinstance(event, bytes) and isinstance(events[-1], bytes):
                events[-1] += event
            else:
                events.append(event)
    parser.finish()
    return events


def events_of(part: Part) -> list[Event]:
    """What a parser emits for a part with the file."""
    assert part.file_name is not None
    return [FileStart(part.file_name), *([part.content] if part.content else []), FileEnd()]


# Bytes in which a delimiter is always about to come: what a scanner for boundaries gets wrong first.
_SPLINTERS = st.sampled_from(
    [b"\r", b"\n", b"\r\n", b"-", b"--", b"\r\n--", b"\r\n--" + BOUNDARY[:-1], BOUNDARY, b"--" + BOUNDARY, b"\r\r\n-"]
)
contents = st.one_of(
    st.binary(max_size=300),
    st.lists(_SPLINTERS, max_size=30).map(b"".join).filter(lambda data: b"\r\n--" + BOUNDARY not in b"\r\n" + data),
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=100)
names = st.text(st.characters(categories=["L", "Nd"], include_characters="_-. "), min_size=1, max_size=40).filter(
    lambda name: name.strip() == name and name not in {".", ".."}
)
fields = st.builds(lambda name, text: Part(name, text.encode()), st.sampled_from(["outputFormat", "x"]), texts)
files = st.builds(lambda data, name: Part(FILE_FIELD, data, name), contents, names)
forms = st.lists(st.one_of(fields, files), min_size=1, max_size=8)
chunk_sizes = st.lists(st.integers(min_value=1, max_value=70), min_size=1, max_size=6)
