"""Words and patterns are counted in files of any length, each occurrence once."""

from pathlib import Path

import pytest

from service.formats.left_out import CHUNK, LONGEST_MATCH, has_features, warn_of_left_out
from service.formats.registry import find_output

KML = find_output("Kml")
ENDS = (b"a </name>", b"a\t</description>", b"a </SimpleData>", b"\t</value>")
NO_ENDS = (b"a</name>", b"a\n</name>", b" </Placemark>", b" <name>", b" </ name>")


@pytest.mark.parametrize("before", [0, *range(CHUNK - 16, CHUNK + 1), CHUNK + LONGEST_MATCH])
def test_blanks_at_the_ends_of_texts_are_counted_once(tmp_path: Path, before: int) -> None:
    """Wherever the pieces begin in which a file is read."""
    path = tmp_path / "a.kml"
    path.write_bytes(b"<Placemark>".ljust(before, b"x") + b"".join((*ENDS, *NO_ENDS)))
    told = [warning for warning in warn_of_left_out(KML, [path]) if "at the end" in warning]
    assert told == [f"Blanks at the end of texts ({len(ENDS)}) were left out."]


@pytest.mark.parametrize("before", [0, CHUNK - 5, CHUNK, 3 * CHUNK])
def test_features_are_found_wherever_they_begin(tmp_path: Path, before: int) -> None:
    """Also in two pieces of a file."""
    path = tmp_path / "a.kml"
    path.write_bytes(b"x" * before + b"<Placemark>" + b"x" * CHUNK)
    assert has_features(KML, path)
    path.write_bytes(b"x" * before)
    assert not has_features(KML, path)
