"""What a run may hold in its directory and in files without names; and its single thread."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sandbox import quota
from sandbox.command import MIB, Limits
from sandbox.verdict import Ending
from tests.sandbox import holding
from tests.sandbox.escapes import compile_hostile
from tests.sandbox.test_hosts import NEEDS_ROOT, NOBODY, printed_by_nobody
from tests.support.small_disk import remount, small_disk

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - where a service makes a directory of its own


def exceeded(directory: str, limits: Limits) -> bool:
    """Whether a directory holds more than allowed."""
    return quota.measure(directory, limits).exceeds(limits)


def test_bytes_and_entries_are_counted_below_all_directories(tmp_path: Path) -> None:
    """Files in subdirectories count, and so does each directory."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(bytes(10_000))
    path = str(tmp_path)
    assert not exceeded(path, Limits(directory_files=3, directory_bytes=100_000))
    assert exceeded(path, Limits(directory_files=2))
    assert exceeded(path, Limits(directory_bytes=9_999))


def test_a_file_of_holes_counts_in_full(tmp_path: Path) -> None:
    """A sparse file would fill the disk that it is copied to."""
    with (tmp_path / "holes").open("wb") as file:
        file.truncate(1 << 40)
    assert exceeded(str(tmp_path), Limits())


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """Neither a link's target nor a loop of links is counted."""
    (tmp_path / "up").symlink_to(tmp_path.parent)
    assert not exceeded(str(tmp_path), Limits(directory_files=1))


def test_a_directory_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    """A run may remove its own directory."""
    assert not exceeded(str(tmp_path / "gone"), Limits())
    assert not quota.disk_is_full(str(tmp_path / "gone"))


def test_a_disk_that_has_no_room_for_the_files_of_a_result_is_full(tmp_path: Path) -> None:
    """A Shapefile takes five; a driver that cannot create one says nothing of the reason."""
    with small_disk(tmp_path / "small", 4096, files=20) as disk:
        assert not quota.disk_is_full(str(disk))
        for name in range(5):
            (disk / str(name)).touch()
        assert quota.disk_is_full(str(disk))


def test_a_disk_that_has_become_read_only_is_full(tmp_path: Path) -> None:
    """It takes nothing, which says nothing of the file."""
    with small_disk(tmp_path / "small", 4096) as disk:
        remount(disk, "ro")
        assert quota.disk_is_full(str(disk))


def test_unnamed_files_count_as_those_with_a_name(tmp_path: Path) -> None:
    """Their bytes and their number are added to those of the directory."""
    (tmp_path / "a").write_bytes(bytes(10_000))
    limits = Limits(directory_bytes=30_000, directory_files=3)
    assert not quota.measure(str(tmp_path), limits, [8_000, 8_000]).exceeds(limits)
    assert quota.measure(str(tmp_path), limits, [8_000, 18_001]).exceeds(limits)
    assert quota.measure(str(tmp_path), limits, [0, 0, 0]).exceeds(limits)


def test_the_less_room_is_left_the_sooner_is_the_next_look() -> None:
    """The further a run is from its limits, the later the next check."""
    limits = Limits(directory_bytes=64 * MIB, directory_files=100_000)
    looks = [quota.DiskUse(held * MIB, 1).seconds_of_room(limits) for held in (0, 16, 32, 48, 64)]
    assert looks == sorted(looks, reverse=True)
    assert looks[0] > looks[-1] > 0


@contextmanager
def places(public: Path, library: Path | None, user: int) -> Iterator[tuple[Path, Path, Path, Path]]:
    """A work root on disk and one in memory, both owned by a user, and what the tests run."""
    hostile = compile_hostile(public)
    if hostile is None or library is None:
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory(dir=public) as base, tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as memory:
        Path(base).chmod(0o755)
        roots = (Path(base) / "work", Path(memory) / "work")
        for root in roots:
            root.mkdir()
            os.chown(root, user, user)
            root.parent.chmod(0o755)
        yield *roots, hostile, library


def require_bounded(found: dict[str, str]) -> None:
    """Runs within the limits end well, runs beyond them are ended, and ways to hide from the count are refused."""
    refused, ended = {*holding.REFUSED, *holding.THREADS}, {*holding.BEYOND}
    expected = {
        f"{launcher}: {attack}": "exit 1" if attack in refused else Ending.OUTPUT_SIZE if attack in ended else "exit 0"
        for launcher in holding.LAUNCHERS
        for attack in holding.ATTACKS
    }
    assert found == expected


@pytest.mark.parametrize("place", [0, 1], ids=["on disk", "in memory"])
async def test_a_run_holds_no_more_than_it_may(public: Path, library: Path | None, place: int) -> None:
    """Whatever it deletes, replaces or maps, with each launcher; nothing gives it more at once, or a thread."""
    with places(public, library, os.geteuid()) as (work, memory, hostile, built):
        require_bounded(await holding.endings(holding.configurations(work, memory, hostile, built)[place]))


@NEEDS_ROOT
@pytest.mark.parametrize("arguments", [[], ["refuse"]], ids=["with namespaces", "without"])
def test_an_ordinary_users_run_holds_no_more_either(public: Path, library: Path | None, arguments: list[str]) -> None:
    """The count needs neither privileges nor namespaces."""
    with places(public, library, NOBODY) as given:
        found = attempts_of_an_ordinary_user([*map(str, given), *arguments])
    for endings in found:
        require_bounded(endings)


def attempts_of_an_ordinary_user(arguments: list[str]) -> list[dict[str, str]]:
    """The output of `holding`, run by an ordinary user."""
    found: list[dict[str, str]] = printed_by_nobody(holding.__file__, *arguments)
    return found
