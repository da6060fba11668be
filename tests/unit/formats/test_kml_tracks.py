"""Tracks without times are found wherever a piece of the file ends."""

from pathlib import Path

import pytest

from service.formats.kml_tracks import lack_times
from service.formats.left_out import CHUNK

TIMED = b"<gx:Track><when>2020-01-02</when><gx:coord>1 2</gx:coord></gx:Track>"
TIMELESS = b"<gx:Track><gx:coord>1 2</gx:coord></gx:Track>"


@pytest.mark.parametrize("track", [TIMELESS, TIMELESS.replace(b"gx:", b"")])
def test_tracks_without_times_are_found_across_pieces_of_a_file(tmp_path: Path, track: bytes) -> None:
    """Also if one ends within the tag that ends the track, with a prefix or without one."""
    path = tmp_path / "a.kml"
    for cut in range(len(b"</gx:Track>") + 1):
        path.write_bytes(b" " * (CHUNK - len(track) + cut) + track + TIMED)
        assert lack_times(path)
