"""A converter's output is examined before it is touched in the event loop."""

import os
from pathlib import Path

import pytest

from service.engine.files import LITTLE_BYTES, LITTLE_FILES, holds_little, open_written, write_for_runs
from service.errors import Rejection
from service.intake.trees import remove_tree
from tests.support.descriptors import no_descriptor


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


def test_a_host_without_open_files_does_not_blame_the_file(tmp_path: Path) -> None:
    """What could not be opened was said to hold nothing that could be written."""
    result = tmp_path / "out.csv"
    result.touch()
    with no_descriptor(), pytest.raises(OSError, match="Too many open files"):
        open_written(result)


def test_what_is_written_for_runs_is_readable_for_their_users(tmp_path: Path) -> None:
    """Whatever the umask of the host: root writes it while a run of another user is held open."""
    before = os.umask(0o077)
    try:
        write_for_runs(tmp_path / "new", "a")
        write_for_runs(tmp_path / "new", "b")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_text() == "b"
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("kind", ["directory", "link", "pipe", "pipe with a reader"])
def test_nothing_is_written_to_what_a_run_has_put_there(tmp_path: Path, kind: str) -> None:
    """A pipe that nobody reads would be waited for, and a link followed."""
    place, elsewhere = tmp_path / "place", tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    match kind:
        case "directory":
            place.mkdir()
        case "link":
            place.symlink_to(elsewhere)
        case _:
            os.mkfifo(place)
    reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK) if kind == "pipe with a reader" else None
    with pytest.raises(Rejection):
        write_for_runs(place, "new")
    assert elsewhere.read_text() == "kept"
    if reader is not None:
        assert os.read(reader, 1) == b""
        os.close(reader)
