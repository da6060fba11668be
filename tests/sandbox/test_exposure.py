"""What runs can read contains nothing private; otherwise the pool does not open."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sandbox import selftest
from sandbox.command import Command
from sandbox.config import Config, LauncherName, Mode, Ogr2ogr, PythonServer
from sandbox.exposure import exposed
from sandbox.libraries import linked_with, outside_the_system
from sandbox.pool import SandboxUnavailable, open_pool
from sandbox.verdict import Ending

NOTHING = frozenset({"namespaces", "Landlock", "system-call filter", "unprivileged user", "no capabilities"})
OGR2OGR = shutil.which("ogr2ogr") or ""
BIND = """
from pathlib import Path
import sys
from sandbox.exposure import exposed
base = Path(sys.argv[1])
print(exposed([base / sys.argv[2]], {"the key": base / sys.argv[3]}, base / "data" / "work"))
"""


class Tree:
    """`data` with `key` and `work`, beside `other`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.data, self.other = base / "data", base / "other"
        self.key, self.work_root = self.data / "key", self.data / "work"
        for directory in (self.work_root, self.other / "below"):
            directory.mkdir(parents=True)
        self.key.write_text("id,secret\n1,2\n")


@pytest.fixture
def tree(public: Path) -> Tree:
    """A tree whose directories other users can traverse."""
    base = Path(tempfile.mkdtemp(dir=public))
    base.chmod(0o755)
    return Tree(base)


def test_whatever_holds_something_private_is_named_with_what_to_do(tree: Tree) -> None:
    """The directory itself, a parent, or a file, each also through a link, and private paths that are links."""
    (tree.other / "link").symlink_to(tree.data)
    private = {"the key": tree.key}
    for readable in (tree.base, tree.data, tree.key, tree.other / "link"):
        assert exposed([readable], private, tree.work_root) == [
            f"the key ({tree.key}) lies in {readable}, which every conversion can read. Move one of them elsewhere."
        ]
    assert exposed([tree.data], {"the key": tree.other / "link" / "key"}, tree.work_root)
    assert exposed([tree.data], {"what is not there yet": tree.data / "a" / "b"}, tree.work_root)


def test_what_is_readable_does_not_lie_within_something_private(tree: Tree) -> None:
    """Except in a directory that also contains the work root, where copies of data are made."""
    (tree.data / "store").mkdir()
    assert exposed([tree.data / "store"], {"the store": tree.data / "store"}, tree.work_root)
    assert exposed([tree.other / "below"], {"the other": tree.other}, tree.work_root)
    assert exposed([tree.data / "proj"], {"the data directory": tree.data}, tree.work_root) == []
    assert exposed([tree.other], {"the key": tree.key}, tree.work_root) == []


@pytest.mark.parametrize(
    ("mounted", "readable", "private", "is_exposed"),
    [
        ("data other/below", "other", "data/key", True),  # what is readable shows it under another name
        ("other data/work", "other", "data/work/below", True),  # the private thing is in it under another name
        ("data other/below", "data/work", "data/key", False),
        ("other data/work", "data/proj", "data", False),  # as where the work root is a file system of its own
    ],
)
def test_a_bind_mount_hides_nothing(tree: Tree, mounted: str, readable: str, private: str, *, is_exposed: bool) -> None:
    """Places are compared, rather than names."""
    source, target = (tree.base / name for name in mounted.split())
    script = f'mount --bind {source} {target} && exec "$@"'
    python = (sys.executable, "-c", BIND, tree.base, readable, private)
    command = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *python)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("this host lets nobody mount")
    assert ("the key" in done.stdout) is is_exposed, done


async def test_a_pool_that_would_show_something_private_does_not_open(tree: Tree) -> None:
    """Not even in the least strict mode, since the configuration is wrong and not the host."""
    config = Config(work_root=tree.work_root, mode=Mode.BEST_EFFORT, readable=(tree.data,))
    with pytest.raises(SandboxUnavailable, match=r"the key .* lies in .*data, which every conversion can read. Move"):
        async with open_pool(config, {"the key": tree.key}):
            pass
    with pytest.raises(SandboxUnavailable, match=r"the memory directory .* lies in"):
        async with open_pool(Config(work_root=tree.work_root, memory_root=tree.other, readable=(tree.other,))):
            pass


@pytest.mark.skipif(not OGR2OGR, reason="no ogr2ogr")
@pytest.mark.parametrize("launcher", [LauncherName.FORK_SERVER, LauncherName.PYTHON_SERVER])
async def test_the_self_test_is_set_upon_what_is_private(
    tree: Tree, library: Path | None, launcher: LauncherName
) -> None:
    """If no layer keeps runs from it, the self-test names the launcher that reached it."""
    config = Config(
        work_root=tree.work_root,
        mode=Mode.BEST_EFFORT,
        converters=1,
        ogr2ogr=Ogr2ogr(program=Path(OGR2OGR), environment={"PATH": "/usr/bin"}, fork_server=library),
        python=PythonServer(environment={"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}),
        launchers=(launcher, LauncherName.EXEC),
        without=NOTHING,
    )
    async with open_pool(config, {"the key": tree.key, "others": tree.other, "nothing": tree.base / "no"}) as pool:
        report = await pool.complete_report()
    (row,) = [row for row in report.launchers if row.name is launcher]
    assert not row.active
    assert "the key" in row.reason
    assert "a TCP listener" in row.reason
    assert {"the key", "others", "the service's environment", "another run's directory"} <= set(report.escapes)
    assert "nothing" not in report.escapes


@pytest.mark.parametrize("length", [88, 89, 200])
async def test_temporary_files_may_have_long_paths(
    public: Path, work_root: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """Longer than the address of a Unix socket, which the self-test tries to reach."""
    with tempfile.TemporaryDirectory(dir=public) as short:
        long = f"{short}/".ljust(length, "x")
        os.mkdir(long)  # noqa: PTH102 -- which would block no less
        monkeypatch.setattr(tempfile, "tempdir", long)
        async with open_pool(Config(work_root=work_root)) as pool:
            assert not pool.report().escapes


@pytest.mark.skipif(not OGR2OGR, reason="no ogr2ogr")
def test_the_gdal_of_this_host_converts_the_sample_as_is_known(tmp_path: Path) -> None:
    """Otherwise each start converts it twice."""
    (tmp_path / selftest._SAMPLE_NAME).write_text(selftest._SAMPLE, "utf-8")
    command = [OGR2OGR, "-f", "CSV", "-lco", "GEOMETRY=AS_XY", "out.csv", selftest._SAMPLE_NAME]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "out.csv").read_bytes() in selftest._CONVERTED


@pytest.mark.skipif(not OGR2OGR or not shutil.which("cc"), reason="no ogr2ogr, or no C compiler")
async def test_a_sample_that_is_written_in_another_way_is_compared(
    tree: Tree, library: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what plain exec makes of it: a GDAL that spells a result differently does not stop the fork server."""
    monkeypatch.setattr(selftest, "_CONVERTED", (b"as no GDAL writes it",))
    ogr2ogr = Ogr2ogr(program=Path(OGR2OGR), environment={"PATH": "/usr/bin"}, fork_server=library)
    launchers = (LauncherName.FORK_SERVER, LauncherName.EXEC)
    config = Config(work_root=tree.work_root, converters=1, ogr2ogr=ogr2ogr, launchers=launchers)
    async with open_pool(config) as pool:
        assert LauncherName.FORK_SERVER in pool.report().active_launchers


async def test_a_host_without_landlock_shows_nothing_private_either(tree: Tree, *, in_namespaces: bool) -> None:
    """The directories on the way to the work root exist without their other content; without namespaces, none opens."""
    config = Config(work_root=tree.work_root, converters=1, without=frozenset({"Landlock"}))
    if not in_namespaces:
        with pytest.raises(SandboxUnavailable, match="no layer guards the file system"):
            async with open_pool(config):
                pass
        return
    async with open_pool(config, {"the data": tree.data, "the key": tree.key, "the others": tree.other}) as pool:
        assert pool.report().escapes == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's runs have a user of their own")
async def test_what_other_users_cannot_read_is_made_readable_for_runs(tree: Tree) -> None:
    """After an installation under `umask 077`, which the service may run under too, nothing is missing."""
    package, program = tree.other / "package", tree.other / "program"
    package.mkdir()
    (package / "data").write_text("read")
    shutil.copy("/bin/cat", program)
    for path in (tree.other, package, tree.work_root):
        path.chmod(0o700)
    (package / "data").chmod(0o600)
    program.chmod(0o700)
    directory = tree.work_root / "deeper" / "run"
    directory.mkdir(parents=True)
    config = Config(work_root=tree.work_root, converters=1, readable=(package,), programs=(program,))
    before = os.umask(0o077)
    try:
        async with open_pool(config) as pool, pool.lease("a") as converter:
            verdict = await converter.run(
                Command(argv=(str(program), str(package / "data"), str(directory / "no")), directory=directory)
            )
    finally:
        os.umask(before)
    assert "unprivileged user" in {layer.name for layer in pool.report().layers if layer.active}
    assert verdict.ending is Ending.EXIT, verdict
    assert verdict.untrusted_stderr.count(b"No such file") == 1
    assert b"denied" not in verdict.untrusted_stderr
    assert (package / "data").stat().st_mode & 0o777 == 0o600


def test_libraries_are_found_wherever_they_lie(tree: Tree) -> None:
    """The system's libraries need not be listed; a file that is not a program has none."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library, program = tree.other / "libown.so", tree.other / "program"
    (tree.other / "own.c").write_text("int own(void) { return 0; }")
    (tree.other / "main.c").write_text("int own(void); int main(void) { return own(); }")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tree.other / "own.c"], check=True)
    subprocess.run([compiler, "-o", program, tree.other / "main.c", library], check=True)
    assert outside_the_system(linked_with(program)) == (library,)
    assert linked_with(tree.key) == ()
    assert linked_with(tree.base / "no") == ()
