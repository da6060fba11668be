"""The form parser yields the same parts however the body is divided, and refuses malformed forms clearly."""

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import MalformedRequest
from service.intake.multipart import MAX_HEADER_BYTES, MAX_PREAMBLE_BYTES, Event, FileEnd, FileStart, TextPart
from tests.unit.intake.forms import (
    BOUNDARY,
    FILE_FIELD,
    MAX_FIELD_BYTES,
    MAX_PARTS,
    Part,
    build,
    chunk_sizes,
    contents,
    cut,
    events_of,
    forms,
    new_parser,
    parse,
)

FILE = Part(FILE_FIELD, b"{}", "a.geojson")


def expected(parts: Sequence[Part]) -> list[Event]:
    events: list[Event] = []
    for part in parts:
        events += events_of(part) if part.name == FILE_FIELD else [TextPart(part.name, part.content.decode())]
    return events


def outcome(chunks: Sequence[bytes]) -> list[Event] | type[Exception]:
    try:
        return parse(chunks)
    except MalformedRequest:
        return MalformedRequest


@pytest.mark.no_cover
@given(parts=forms, sizes=chunk_sizes)
def test_any_chunking_yields_the_same_parts(parts: list[Part], sizes: list[int]) -> None:
    """The parts arrive unchanged and in order, wherever the body is divided."""
    assert parse(cut(build(parts), sizes)) == expected(parts)


@pytest.mark.parametrize("length", [1, 2, 3, len(BOUNDARY) + 4, len(BOUNDARY) + 5, len(BOUNDARY) + 6])
def test_a_boundary_is_found_wherever_it_is_cut(length: int) -> None:
    """Even inside what follows the boundary, or if the text before it was already passed on."""
    parts = [Part(FILE_FIELD, b"x" * 100, "a.geojson"), Part(FILE_FIELD, b"y" * 100, "b.geojson")]
    body = build(parts)
    for start in range(len(body) - length):
        assert parse([body[:start], body[start : start + length], body[start + length :]]) == expected(parts)


@given(content=contents, preamble=contents, sizes=chunk_sizes)
def test_preamble_and_epilogue_are_ignored(content: bytes, preamble: bytes, sizes: list[int]) -> None:
    """Text before the first boundary and after the last is not part of the form (RFC 2046 5.1.1)."""
    part = Part(FILE_FIELD, content, "a.geojson")
    body = build([part], preamble=preamble, epilogue=b"\r\nepilogue\r\n--" + BOUNDARY + b"\r\n")
    assert parse(cut(body, sizes)) == expected([part])


@given(parts=forms, sizes=chunk_sizes, data=st.data())
def test_a_body_cut_off_anywhere_is_refused(parts: list[Part], sizes: list[int], data: st.DataObject) -> None:
    """A body without its closing boundary is malformed, wherever it ends."""
    body = build(parts, epilogue=b"")
    end = data.draw(st.integers(min_value=0, max_value=len(body) - 1))
    with pytest.raises(MalformedRequest):
        parse(cut(body[:end], sizes))


@given(parts=forms, sizes=chunk_sizes, data=st.data())
def test_a_damaged_body_has_one_outcome(parts: list[Part], sizes: list[int], data: st.DataObject) -> None:
    """Parts or a refusal, the same wherever the body is divided."""
    body = bytearray(build(parts))
    position = data.draw(st.integers(min_value=0, max_value=len(body) - 1))
    body[position : position + 1] = data.draw(st.sampled_from([b"", b"\0", b"\n", b"\r", b"\r\n", b'"', b"\xff", b"-"]))
    assert outcome([bytes(body)]) == outcome(cut(bytes(body), sizes))


@given(body=st.binary(max_size=500), sizes=chunk_sizes)
def test_noise_is_refused(body: bytes, sizes: list[int]) -> None:
    """Random bytes are refused, and never cause another error."""
    assert outcome(cut(body, sizes)) is MalformedRequest


def with_header(header: bytes) -> bytes:
    return build([FILE]).replace(b"\r\n\r\n", b"\r\n" + header + b"\r\n\r\n", 1)


DISPOSITION = b'Content-Disposition: form-data; name="file"; filename="a.geojson"'

REFUSED = {
    "an empty body": b"",
    "no closing boundary": build([FILE]).replace(b"--" + BOUNDARY + b"--", b""),
    "another boundary": build([FILE]).replace(BOUNDARY, b"another"),
    "the boundary inside a file": build([Part(FILE_FIELD, b"\r\n--" + BOUNDARY + b"x", "a.geojson")]),
    "a boundary ended by a line feed alone": build([FILE]).replace(BOUNDARY + b"\r\n", BOUNDARY + b"\n"),
    "a long preamble": build([FILE], preamble=b"x" * (MAX_PREAMBLE_BYTES + 1)),
    "too many parts": build([Part("x", b"")] * (MAX_PARTS + 1)),
    "a long field": build([Part("x", b"x" * (MAX_FIELD_BYTES + 1))]),
    "a field name of kilobytes": build([Part("x" * 2000, b"")]),
    "a long header": with_header(b"X-Long: " + b"x" * MAX_HEADER_BYTES),
    "a header of 64 KB that never ends": b"--" + BOUNDARY + b"\r\nX: " + b"x" * 65536,
    "a line feed before a header": with_header(b"\nX: y"),
    "a line feed in a header": with_header(b"X: y\nz"),
    "many headers": with_header(b"\r\n".join(b"X-%d: x" % number for number in range(100))),
    "a header without a colon": with_header(b"nonsense"),
    "a header that is not UTF-8": with_header(b"X: \xff"),
    "a part without headers": build([FILE]).replace(DISPOSITION + b"\r\n", b""),
    "a part without a disposition": build([FILE]).replace(DISPOSITION, b"X: y"),
    "another disposition": build([FILE]).replace(b"form-data", b"attachment"),
    "a part without a name": build([FILE]).replace(b'name="file"; ', b""),
    "a file without a name": build([Part(FILE_FIELD, b"{}")]),
    "a file with an empty name": build([Part(FILE_FIELD, b"", "")]),
    "a file whose name is a directory": build([Part(FILE_FIELD, b"{}", "data/")]),
    "a file under a text field's name": build([Part("upload", b"x" * (MAX_FIELD_BYTES + 1), "a.geojson")]),
    "base64": with_header(b"Content-Transfer-Encoding: base64"),
    "a field that is not UTF-8": build([Part("x", b"\xff")]),
    "a field in an unknown character set": build([Part("x", b"a")]).replace(
        b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset=idna\r\n\r\n"
    ),
    "a field with a NUL": build([Part("x", b"a\0b")]),
    "a part longer than its Content-Length": with_header(b"Content-Length: 1"),
    "a part shorter than its Content-Length": with_header(b"Content-Length: 3"),
}


@pytest.mark.parametrize("chunk_bytes", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_form_is_refused(case: str, chunk_bytes: int) -> None:
    """A body that breaks the syntax or a cap is refused with this service's messages."""
    with pytest.raises(MalformedRequest) as refusal:
        parse(cut(REFUSED[case], [chunk_bytes]))
    assert refusal.value.message.endswith((".", "@cities.geojson"))
    assert "segment" not in refusal.value.message


def test_a_hundred_thousand_parts_are_refused_early() -> None:
    """Reading ends with the part that exceeds the cap."""
    parser = new_parser()
    body = build([Part("x", b"")] * 100_000)
    chunks = iter(cut(body, [4096]))
    with pytest.raises(MalformedRequest):
        list(chain.from_iterable(map(parser.feed, chunks)))
    assert len(list(chunks)) > len(body) // 4096 - 3


def test_a_body_that_is_no_form_is_refused_early() -> None:
    """A body without the boundary is refused within its first kilobytes."""
    parser = new_parser()
    with pytest.raises(MalformedRequest):
        list(parser.feed(bytes(2 * MAX_PREAMBLE_BYTES)))


@pytest.mark.parametrize("encoding", [b"binary", b"8bit", b"7BIT"])
def test_encodings_that_change_nothing_are_taken(encoding: bytes) -> None:
    """Some libraries declare the identity as a transfer encoding."""
    assert parse([with_header(b"Content-Transfer-Encoding: " + encoding)]) == expected([FILE])


def test_a_field_in_its_own_character_set_is_decoded() -> None:
    """A text part may declare its character set."""
    body = build([Part("x", b"Gew\xe4sser")]).replace(
        b"\r\n\r\n", b"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\n\r\n", 1
    )
    assert parse([body]) == [TextPart("x", "Gewässer")]


def test_a_field_may_be_sent_with_a_file_name() -> None:
    """The part's name decides: some libraries give text parts a file name."""
    assert parse([build([Part("x", b"Kml", "blob")])]) == [TextPart("x", "Kml")]


def test_an_empty_file_is_a_file() -> None:
    """It has a beginning and an end."""
    assert parse([build([Part(FILE_FIELD, b"", "a.csv")])]) == [FileStart("a.csv"), FileEnd()]


def test_a_form_without_parts_is_a_form() -> None:
    """The closing boundary alone is well-formed."""
    assert parse([b"--" + BOUNDARY + b"--\r\n"]) == []
