"""Directories of processes: those of killed processes are removed, and no others."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.locked_directory import LockedDirectory

OWNERS = 8
TIMES = 40


def test_processes_that_start_together_leave_each_other_s_directories_alone(tmp_path: Path) -> None:
    """Each looks for abandoned directories while others create theirs."""

    def own(_: int) -> None:
        for _time in range(TIMES):
            directory = LockedDirectory(tmp_path, "own")
            (directory.path / "file").touch()
            directory.remove()

    with ThreadPoolExecutor(OWNERS) as owners:
        list(owners.map(own, range(OWNERS)))
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_directory_is_removed_by_the_next_owner(tmp_path: Path) -> None:
    """With its content."""
    (tmp_path / "own-abandoned" / "deep").mkdir(parents=True)
    directory = LockedDirectory(tmp_path, "own")
    assert list(tmp_path.iterdir()) == [directory.path]
    directory.remove()
