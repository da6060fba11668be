"""Documents are mended wherever a piece of them ends."""

from pathlib import Path

import pytest

from service.formats.documents import without_empty_elevations
from service.formats.left_out import PIECE

EMPTY = b"<ele> \n </ele>"


@pytest.mark.parametrize("before_end", [3, len(b"<ele>"), len(b"<ele> \n"), len(EMPTY) - 1, len(EMPTY)])
def test_an_empty_elevation_is_taken_out_wherever_a_piece_of_the_file_ends(tmp_path: Path, before_end: int) -> None:
    """It stayed, and became 0, if a piece ended between its tags."""
    start, end = b'<gpx><trkpt lat="1" lon="2">', b"</trkpt></gpx>"
    path = tmp_path / "a.gpx"
    path.write_bytes(start + b" " * (PIECE - len(start) - before_end) + EMPTY + end)
    found, _ = without_empty_elevations(path, tmp_path / "new" / "b.gpx")
    assert found.read_bytes() == path.read_bytes().replace(EMPTY, b"")
