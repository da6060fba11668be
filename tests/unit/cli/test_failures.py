"""What commands say of failures that an operator can remedy."""

import errno
import os
from pathlib import Path

import pytest

from service.cli.failures import sentence_for
from service.settings import Settings


@pytest.mark.parametrize(
    ("name", "blamed"),
    [("data/objects/x", "GEOMILL_DATA_DIR"), ("data", "GEOMILL_DATA_DIR"), ("usage.csv", "usage.csv")],
)
def test_a_full_disk_is_told_with_what_is_on_it(tmp_path: Path, name: str, blamed: str) -> None:
    """A report that is written elsewhere needs no other data directory."""
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / name))
    sentence = sentence_for(error, Settings(data_dir=str(tmp_path / "data"))) or ""
    assert "No space left" in sentence
    assert [word for word in ("GEOMILL_DATA_DIR", "usage.csv") if word in sentence] == [blamed]


def test_a_full_disk_that_names_no_file_is_told() -> None:
    """Such as when a file that is open is written."""
    assert "No space left" in (sentence_for(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Settings()) or "")
