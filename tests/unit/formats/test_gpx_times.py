"""Times of GPX are written anew only where one is not as the schema has it."""

from pathlib import Path

import pytest

from service.formats.gpx_times import with_plain_times
from service.formats.left_out import CHUNK

TIME = b"<time>2020-01-02T03:04:05.678Z</time>"


@pytest.mark.parametrize("before_end", [3, 20, 32, len(TIME)])
def test_plain_times_stay_wherever_a_piece_of_the_file_ends(tmp_path: Path, before_end: int) -> None:
    """Most files of more than a MiB were written anew, because a time was cut off there."""
    path = tmp_path / "a.gpx"
    path.write_bytes(b"<gpx>" + b" " * (CHUNK - len(b"<gpx>") - before_end) + TIME + b"</gpx>")
    assert with_plain_times(path, tmp_path / "new" / "b.gpx") == (path, "")
    path.write_bytes(path.read_bytes().replace(b"-01-02T", b"-1-2T"))
    found, _ = with_plain_times(path, tmp_path / "new" / "b.gpx")
    assert TIME in found.read_bytes()
