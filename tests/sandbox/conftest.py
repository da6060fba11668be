"""A pool per test module, and directories below its work root."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from sandbox import forkserver
from sandbox.command import Command, Limits
from sandbox.config import Config, Mode
from sandbox.isolation import namespaces
from sandbox.pool import open_pool
from sandbox.verdict import Verdict
from tests.sandbox.processes import disregard_what_runs

RunPython = Callable[..., Verdict]


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """A directory that other users can traverse, unlike pytest's."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture(scope="session")
def library(public: Path) -> Path | None:
    """The fork server's library, a copy of the checkout's if that has been built; None without a compiler."""
    if shutil.which("cc") is None:
        return None
    cache = public / "cache"
    cache.mkdir()
    if here := forkserver.built():
        shutil.copy(here, cache)
    return forkserver.build(cache)


@pytest.fixture(scope="session")
def in_namespaces(public: Path) -> bool:
    """Whether this host gives runs namespaces of their own; where it does not, Landlock and the filter remain."""
    with (
        tempfile.TemporaryDirectory(dir=public) as work_root,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_pool(Config(work_root=Path(work_root), mode=Mode.BEST_EFFORT))) as pool,
    ):
        return any(layer.active for layer in pool.report().layers if layer.name == namespaces.NAME)


@pytest.fixture(autouse=True)
def _processes_of_this_test() -> None:
    """Tests inspect and kill only the processes that they started."""
    disregard_what_runs()


@pytest.fixture
def work_root(tmp_path: Path) -> Iterator[Path]:
    """The parent of the runs' directories."""
    root = tmp_path / "work"
    root.mkdir()
    yield root
    shutil.rmtree(root)


@pytest.fixture
def directory(work_root: Path) -> Path:
    """The directory of one run."""
    path = work_root / "job"
    path.mkdir()
    return path


@pytest.fixture
def config(work_root: Path) -> Config:
    """A pool with default settings."""
    return Config(work_root=work_root)


@pytest.fixture(scope="module")
def run_python() -> Iterator[RunPython]:
    """Run a Python program in a pool that the module's tests share, whatever earlier programs did."""
    with (
        tempfile.TemporaryDirectory() as work_root,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_pool(Config(work_root=Path(work_root)))) as pool,
    ):

        async def run_command(command: Command) -> Verdict:
            async with pool.lease("tenant") as converter:
                return await converter.run(command)

        def run(program: str, **limits: float) -> Verdict:
            command = Command(
                argv=(sys.executable, "-c", program),
                directory=Path(tempfile.mkdtemp(dir=work_root)),
                limits=Limits(**{"wall_seconds": 20, "cpu_seconds": 10, **limits}),  # type: ignore[arg-type]  # limits of several types
            )
            return portal.call(run_command, command)

        yield run
