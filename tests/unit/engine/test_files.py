"""A converter's output is examined before it is touched in the event loop."""

import os
from pathlib import Path

import pytest

from service.engine.files import LITTLE_BYTES, LITTLE_FILES, holds_little
from service.intake.trees import remove_tree


def test_a_few_small_files_are_little(tmp_path: Path) -> None:
    """In nested directories too."""
    (tmp_path / "out" / "deep").mkdir(parents=True)
    (tmp_path / "out" / "deep" / "a.shp").write_bytes(b"x" * 1000)
    assert holds_little(tmp_path)
    assert holds_little(tmp_path / "out" / "deep" / "a.shp")
    assert holds_little(tmp_path / "not there")


@pytest.mark.parametrize("files", [LITTLE_FILES, LITTLE_FILES * 20])
def test_many_files_are_not(tmp_path: Path, files: int) -> None:
    """However small."""
    for number in range(files):
        (tmp_path / str(number)).touch()
    assert not holds_little(tmp_path)


def test_many_bytes_are_not(tmp_path: Path) -> None:
    """In one file or several, including holes, which readers get as zeros."""
    with (tmp_path / "a").open("wb") as file:
        file.truncate(LITTLE_BYTES)
    assert not holds_little(tmp_path)


def test_what_lies_too_deep_to_be_named_is_not(tmp_path: Path) -> None:
    """A program can nest directories beyond the longest path."""
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert not holds_little(tmp_path)
    remove_tree(tmp_path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A hostile program may leave a link to a full directory."""
    full = tmp_path / "full"
    full.mkdir()
    for number in range(LITTLE_FILES + 1):
        (full / str(number)).touch()
    left = tmp_path / "left"
    left.mkdir()
    (left / "link").symlink_to(full)
    assert holds_little(left)
