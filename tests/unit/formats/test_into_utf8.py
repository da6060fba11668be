"""Where a text is not in the encoding that it should have."""

from pathlib import Path

import pytest

from service.formats.into_utf8 import CHUNK, first_other_line

LINE = b"123456\n"
BEFORE = CHUNK // len(LINE)
"""How many lines fit into what is read at a time."""
FILLED = LINE * BEFORE + b"_" * (CHUNK % len(LINE))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", 0),
        (LINE * 3, 0),
        ("é\n".encode() * 3, 0),
        (LINE + b"\xe9\n", 2),
        (FILLED[:-1] + "é".encode() + LINE, 0),
        (FILLED[:-1] + b"\xc3" + LINE, BEFORE + 1),
        (FILLED[:-2] + "€".encode() + LINE + b"\xff", BEFORE + 2),
        (FILLED + LINE + b"\xc3", BEFORE + 2),
        (FILLED[:-1] + b"\xc3", BEFORE + 1),
    ],
)
def test_the_first_line_that_is_not_utf8_is_found(tmp_path: Path, content: bytes, line: int) -> None:
    """Also in and behind a character of which each half is read with another piece."""
    (tmp_path / "text").write_bytes(content)
    assert first_other_line(tmp_path / "text") == line
