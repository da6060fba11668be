"""What a directory may hold."""

from pathlib import Path

from sandbox import quota
from sandbox.command import Limits


def test_bytes_and_entries_are_counted_below_all_directories(tmp_path: Path) -> None:
    """A file in a directory of a directory counts, and so does each directory."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(bytes(10_000))
    path = str(tmp_path)
    assert not quota.exceeded(path, Limits(directory_files=3, directory_bytes=100_000))
    assert quota.exceeded(path, Limits(directory_files=2))
    assert quota.exceeded(path, Limits(directory_bytes=9_999))


def test_a_file_of_holes_counts_in_full(tmp_path: Path) -> None:
    """What costs nothing here would fill the disk that it is copied to."""
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 40)
    assert quota.exceeded(str(tmp_path), Limits())


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Neither what a link names nor a loop of links is counted."""
    (tmp_path / "up").symlink_to(tmp_path.parent)
    assert not quota.exceeded(str(tmp_path), Limits(directory_files=1))


def test_a_directory_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    """A run may remove its own directory."""
    assert not quota.exceeded(str(tmp_path / "gone"), Limits())
    assert not quota.disk_is_full(str(tmp_path / "gone"))
