"""A file system that tests can fill."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(directory: Path, kibibytes: int, files: int = 0) -> Iterator[Path]:
    """Mount a file system of that size, for so many `files` unless 0; skip the test where it cannot be mounted."""
    directory.mkdir()
    options = f"size={kibibytes}k,nr_inodes={files},mode=1777"
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root, outside of most containers, can mount a small file system to fill")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)


def remount(disk: Path, options: str) -> None:
    """Change the options of a `small_disk`, such as `ro`."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(disk)], check=True)
