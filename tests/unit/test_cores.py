"""How many cores are usable: the strictest limit decides."""

from pathlib import Path

import pytest

from service.cores import usable_cores

HOST = 8


def groups(directory: Path, membership: str, files: dict[str, str]) -> tuple[Path, Path]:
    """Create a file with a process's control groups, and a mount with these files."""
    mount = directory / "cgroup"
    for name, text in files.items():
        (mount / name).parent.mkdir(parents=True, exist_ok=True)
        (mount / name).write_text(text)
    (directory / "self").write_text(membership)
    return directory / "self", mount


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/\n", {}, HOST),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, HOST),
        ("0::/a/b\n", {"a/b/cpu.max": "200000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "10000 100000\n"}, 1),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "500000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "400000 100000\n"}, 4),
        ("0::/of/the/host\n", {"cpu.max": "400000 100000\n"}, 4),
        (
            "5:memory:/m\n3:cpu,cpuacct:/c\n0::/\n",
            {"cpu,cpuacct/c/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/c/cpu.cfs_period_us": "50000\n"},
            5,
        ),
        ("3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, HOST),
    ],
)
def test_the_strictest_quota_counts(tmp_path: Path, membership: str, files: dict[str, str], expected: int) -> None:
    """In version 2 and version 1, in the group and its parents; a fraction of a core counts as one."""
    assert usable_cores(HOST, *groups(tmp_path, membership, files)) == expected


def test_a_host_without_control_groups_has_all_its_cores(tmp_path: Path) -> None:
    """For example, a host that does not run Linux."""
    assert usable_cores(HOST, tmp_path / "none", tmp_path) == HOST
