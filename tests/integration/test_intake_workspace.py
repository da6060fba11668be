"""Who removes the directories of uploads: the request, the job, or the next start."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import anyio.lowlevel
import anyio.to_thread
import pytest

from service.errors import Overloaded
from service.intake.areas import claim_area, sweep
from service.intake.form import MEBIBYTE
from service.intake.trees import remove_tree
from service.intake.workspace import WorkArea, open_work_area
from tests.support.descriptors import no_descriptor

LIVES = """
import sys, time, pathlib, anyio
from service.intake.workspace import open_work_area
async def main():
    async with open_work_area(pathlib.Path(sys.argv[1])) as area:
        directory = area.new_directory()
        (directory / "upload").write_bytes(b"x")
        print(directory, flush=True)
        await anyio.sleep(60)
anyio.run(main)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def living(root: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another process with an upload under the same root, and the upload's directory."""
    with subprocess.Popen([sys.executable, "-c", LIVES, str(root)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        yield process, directory
        process.kill()


def entries(directory: Path) -> list[Path]:
    return list(directory.iterdir())


async def test_a_workspace_ends_with_its_request(root: Path) -> None:
    """Directories are removed when the request returns or fails; one that was handed over stays."""
    owned: list[Path] = []

    async def fail(area: WorkArea) -> NoReturn:
        async with area.workspace() as workspace:
            owned.extend([workspace.new_directory(), workspace.new_directory()])
            assert workspace.handover(owned[1]) == owned[1]
            raise RuntimeError

    async with open_work_area(root) as area:
        with pytest.raises(RuntimeError):
            await fail(area)
        assert [directory.exists() for directory in owned] == [False, True]
        await area.remove(owned[1])
        await area.remove(owned[1])
        assert [directory.exists() for directory in owned] == [False, False]
    assert entries(root) == []


async def test_a_directory_is_handed_over_once(root: Path) -> None:
    """A directory has one owner."""
    async with open_work_area(root) as area, area.workspace() as workspace:
        directory = workspace.handover(workspace.new_directory())
        with pytest.raises(KeyError):
            workspace.handover(directory)


async def test_a_directory_is_private(root: Path) -> None:
    """Others may traverse the area without listing it, and cannot access an upload's directory."""
    async with open_work_area(root) as area:
        directory = area.new_directory()
        assert directory.stat().st_mode & 0o777 == 0o700
        assert directory.parent.stat().st_mode & 0o777 == 0o711
        assert len(directory.name) == 32


async def test_a_cancelled_request_is_cleaned_up(root: Path) -> None:
    """Cancellation does not prevent removal."""
    async with open_work_area(root) as area:
        with anyio.CancelScope() as scope:
            async with area.workspace() as workspace:
                directory = workspace.new_directory()
                scope.cancel()
                await anyio.lowlevel.checkpoint()
        assert not directory.exists()


def test_a_start_sweeps_what_a_killed_process_left(living: tuple[subprocess.Popen[str], Path], root: Path) -> None:
    """The area of a killed process is removed by the next sweep; that of a live process stays."""
    process, directory = living
    assert sweep(root) == 0
    assert (directory / "upload").exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert sweep(root) == 1
    assert entries(root) == []


async def test_a_server_removes_what_another_has_left(living: tuple[subprocess.Popen[str], Path], root: Path) -> None:
    """Once that one was killed, without a start of either."""
    process, directory = living
    async with open_work_area(root) as area:
        own = area.new_directory()
        await area.sweep()
        assert (directory / "upload").exists()
        process.kill()
        process.wait()
        await area.sweep()
        assert entries(root) == [own.parent]
        assert own.exists()


async def test_servers_share_a_root(living: tuple[subprocess.Popen[str], Path], root: Path) -> None:
    """A server that starts and ends beside another leaves the other's uploads alone."""
    _, directory = living
    async with open_work_area(root) as area:
        assert area.new_directory().parent != directory.parent
    assert (directory / "upload").exists()


async def test_areas_are_claimed_while_others_sweep(root: Path) -> None:
    """A sweep between the creation of an area and its lock never removes a claimed one."""

    def claim_and_hold() -> None:
        for _ in range(50):
            path, lock = claim_area(root)
            assert path.is_dir()
            os.close(lock)

    def sweep_often() -> None:
        for _ in range(200):
            sweep(root)

    async with anyio.create_task_group() as tasks:
        for work in (claim_and_hold, claim_and_hold, sweep_often, sweep_often):
            tasks.start_soon(anyio.to_thread.run_sync, work)
    sweep(root)
    assert entries(root) == []


def test_a_sweep_takes_only_what_a_server_made(root: Path) -> None:
    """Files and directories that are no areas survive, whatever stands in the root."""
    (root / "notes").mkdir(parents=True)
    (root / ("a" * 32)).write_bytes(b"")
    (root / ("b" * 32)).symlink_to(root / "notes")
    assert sweep(root) == 0
    assert len(list(root.iterdir())) == 3


def test_a_sweep_of_nothing_is_none(root: Path) -> None:
    """Where nothing was created yet, there is nothing to sweep."""
    assert sweep(root) == 0


def test_a_deep_tree_is_removed(tmp_path: Path) -> None:
    """Even a tree deeper than any path or stack."""
    top = tmp_path / "tree"
    top.mkdir()
    descriptor = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    remove_tree(top)
    assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    """Symbolic links in a tree are removed without touching their targets, as are dangling ones."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "file").write_bytes(b"x")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "directory").symlink_to(outside)
    (tree / "file").symlink_to(outside / "file")
    (tree / "nothing").symlink_to(tmp_path / "nothing")
    os.mkfifo(tree / "pipe")
    remove_tree(tree)
    assert [path.name for path in tmp_path.rglob("*")] == ["outside", "file"]
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_root_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    """If a link has replaced a tree, the tree is left and an error says so."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"x")
    (tmp_path / "tree").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        remove_tree(tmp_path / "tree")
    assert (outside / "file").exists()


CLOSED = """
import os, pathlib, sys
from service.intake.trees import remove_tree
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
tree = pathlib.Path(sys.argv[1]) / "tree"
(tree / "a" / "b").mkdir(parents=True)
(tree / "a" / "b" / "file").write_bytes(b"x")
for directory in (tree / "a" / "b", tree / "a", tree):
    directory.chmod(0)
remove_tree(tree)
"""


def test_closed_directories_are_removed() -> None:
    """Directories that their owner may neither list nor change are removed nevertheless, without root."""
    with tempfile.TemporaryDirectory() as place:  # those of pytest are closed to other users
        Path(place).chmod(0o777)
        done = subprocess.run([sys.executable, "-c", CLOSED, place], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert entries(Path(place)) == []


async def test_what_cannot_be_removed_does_not_fail_the_request(root: Path) -> None:
    """Its request gets its response, and it is removed a while later."""
    async with open_work_area(root) as area:
        async with area.workspace() as workspace:
            directory = workspace.new_directory()
            directory.rmdir()
            directory.write_bytes(b"")
        assert directory.exists()
        await area.remove_left()
        assert directory.exists()
        directory.unlink()
        directory.mkdir()
        await area.remove_left()
        assert not directory.exists()


async def test_uploads_are_removed_once_the_system_allows_open_files_again(root: Path) -> None:
    """Those that ended while it did not filled the memory, because they were kept until the next start."""
    async with open_work_area(root) as area:
        with ExitStack() as stack:
            async with area.workspace() as workspace:
                directory = workspace.new_directory()
                (directory / "in" / "it").mkdir(parents=True)
                stack.enter_context(no_descriptor())
        assert directory.exists()
        await area.remove_left()
        assert not entries(directory.parent)


async def test_many_uploads_share_their_memory(root: Path) -> None:
    """One upload may buffer a mebibyte, but a thousand together no more than a fixed total."""
    async with open_work_area(root) as area:
        assert area.buffer_bytes == MEBIBYTE
        assert await held_by(area, 8) == MEBIBYTE
        assert await held_by(area, 128) == MEBIBYTE // 4
        assert await held_by(area, 5000) == 65536
        assert area.buffer_bytes == MEBIBYTE


async def held_by(area: WorkArea, count: int) -> int:
    """How much one upload may buffer while `count` are open."""
    area_open = 0
    ready, done = anyio.Event(), anyio.Event()

    async def hold() -> None:
        nonlocal area_open
        async with area.workspace():
            area_open += 1
            if area_open == count:
                ready.set()
            await done.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(hold)
        await ready.wait()
        held = area.buffer_bytes
        done.set()
    return held


async def test_uploads_are_refused_while_the_disk_is_away(root: Path) -> None:
    """As on a full one: the client may try again, and succeeds once the disk is back."""
    async with open_work_area(root) as area, area.workspace() as workspace:
        away = root.rename(root.with_name("away"))  # noqa: ASYNC240 -- nothing else runs here
        with pytest.raises(Overloaded):
            workspace.new_directory()
        with pytest.raises(Overloaded):
            await workspace.reserve(MEBIBYTE)
        away.rename(root)
        await workspace.reserve(MEBIBYTE)
        assert workspace.new_directory().is_dir()
