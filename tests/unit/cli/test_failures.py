"""What commands say of failures that an operator can remedy."""

import errno
import os
from pathlib import Path

import asyncpg
import pytest

from service.cli.failures import sentence_for
from service.db.faults import unavailable
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


@pytest.mark.parametrize(("name", "remedy"), [("data/link-secrets", "chown -R"), ("data", "Name a directory")])
def test_a_file_of_another_user_is_told(tmp_path: Path, name: str, remedy: str) -> None:
    """Such as one that root has created in the directory of the service, but not that there can be no directory."""
    if name != "data":
        (tmp_path / "data").mkdir()
    error = PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / name))
    assert remedy in (sentence_for(error, Settings(data_dir=str(tmp_path / "data"))) or "")


def test_a_full_disk_that_names_no_file_is_told() -> None:
    """Such as when a file that is open is written."""
    assert "No space left" in (sentence_for(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), Settings()) or "")


@pytest.mark.parametrize("url", ["", "postgresql://127.0.0.1/geomill"])
def test_a_full_disk_of_the_database_is_told(url: str) -> None:
    """It can be reached, so nobody need look at the network."""
    full = unavailable(asyncpg.DiskFullError("No space left on device"))
    full.__cause__ = asyncpg.DiskFullError("No space left on device")
    sentence = sentence_for(full, Settings(database_url=url)) or ""
    assert ("cannot be written" in sentence, "reach" in sentence) == (True, False)
    assert "cannot write to its database" in str(full)


def test_a_server_that_does_not_answer_is_told_in_words() -> None:
    """Not by the name of a class."""
    silent = unavailable(TimeoutError())
    silent.__cause__ = TimeoutError()
    assert "(no answer)" in (sentence_for(silent, Settings()) or "")
