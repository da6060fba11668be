"""What a wheel holds: everything under one name, so that it can be installed beside a package named `service`.

In this repository the packages are `service` and `sandbox`. In a wheel they are `geomill` and `geomill.sandbox`: this
hook, which hatchling runs, copies them with their imports changed, and adds the SQL and the compiled fork server. Code
therefore names a module of its own by what it imported (`module.__name__`, `__package__`), never by a text.
"""

import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

NAMES = {"service": "geomill", "sandbox": "geomill.sandbox"}
"""The package of each directory, here and in a wheel."""
SQL = "_sql"
_BUILT = ("__pycache__", "*.pyc", "*.so", "*.so.*")
_ROOT = re.compile(r"(?:service|sandbox)\b")


class NotRenamed(ValueError):
    """A file refers to a module of ours in a way that the hook does not change; the message says where."""


class CustomBuildHook(BuildHookInterface[BuilderConfig]):
    """Replaces the contents of a wheel. An editable installation stays what it is: the checkout on Python's path."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Stage the package, and name the platform of the library that it holds."""
        if self.target_name != "wheel" or version == "editable":
            return
        self._stage = Path(tempfile.mkdtemp(prefix="geomill-wheel-"))
        package = self._stage / "geomill"
        stage(Path(self.root), package)
        build_data["force_include"][str(package)] = "geomill"
        scripts = self.metadata.core.scripts
        scripts.update({command: renamed_reference(reference) for command, reference in scripts.items()})
        if next(package.rglob("forkserver-*.so"), None):
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 -- hatchling's
        """Remove what was staged."""
        if self.target_name == "wheel" and version != "editable":
            shutil.rmtree(self._stage)


def _platform() -> str:
    """The tag of hosts with at least this C library; where it is unknown, of this operating system and processor."""
    tags = list(platform_tags())
    return next((tag for tag in tags if not tag.startswith("linux_")), tags[0])


def stage(root: Path, package: Path) -> None:
    """Write the package of a wheel to `package`, from the checkout or source distribution `root`.

    Raises:
        NotRenamed: see `renamed`.
    """
    for directory, name in NAMES.items():
        target = package.joinpath(*name.split(".")[1:])
        shutil.copytree(root / directory, target, ignore=shutil.ignore_patterns(*_BUILT), dirs_exist_ok=True)
    for path in package.rglob("*.py"):
        try:
            path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
        except NotRenamed as error:
            raise NotRenamed(f"{path.relative_to(package)}, {error}") from None
    shutil.copytree(root / "sql", package / SQL)
    # Without a compiler it says so, and the wheel is one for every platform, with a slower start of converters.
    command = [sys.executable, "-m", "sandbox.forkserver", "build", str(package / "sandbox" / "forkserver")]
    subprocess.run(command, cwd=root, stdout=subprocess.DEVNULL, check=False)


def renamed(source: str) -> str:
    """Return the source of a module with every import of our packages changed to their names in a wheel.

    Raises:
        NotRenamed: it imports one in a form that cannot be changed in place, or names a module of ours in a text.
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    for number, column, old, new in sorted(_changes(tree), reverse=True):
        line = lines[number - 1].encode()
        before, after = line[:column].decode(), line[column:].decode()
        if not after.startswith(old):
            raise NotRenamed(f"line {number}: write this import on one line, with single spaces: {after.strip()}")
        lines[number - 1] = before + new + after.removeprefix(old)
    return "".join(lines)


def renamed_reference(reference: str) -> str:
    """`service.cli:main` as `geomill.cli:main`."""
    return _ROOT.sub(lambda found: NAMES[found[0]], reference, count=1)


def _changes(tree: ast.AST) -> Iterator[tuple[int, int, str, str]]:
    """Yield where what stands, and what replaces it: line from 1, column in bytes from 0."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if _ROOT.match(module):
                old = f"from {module} "
                yield node.lineno, node.col_offset, old, f"from {renamed_reference(module)} "
            case ast.Import(names=[ast.alias(name=name, asname=None)]) if name in NAMES:
                yield node.lineno, node.col_offset, f"import {name}", f"import {NAMES[name]} as {name}"
            case ast.Import(names=names) if any(_ROOT.match(alias.name) for alias in names):
                raise NotRenamed(f"line {node.lineno}: write `from … import …` instead of `{ast.unparse(node)}`")
            case ast.Tuple(elts) | ast.List(elts) if any(map(_runs_ours, elts, elts[1:])):
                raise NotRenamed(f"line {node.lineno}: take the name after '-m' from __package__")
            case ast.Constant(value=str(text)) if re.fullmatch(r"(?:service|sandbox)(?:\.\w+)+", text):
                if _is_module(text):
                    raise NotRenamed(f"line {node.lineno}: take the name {text!r} from the module or from __package__")


def _runs_ours(option: ast.expr, module: ast.expr) -> bool:
    """Whether this is `"-m"` and the name of one of our packages, which alone is an ordinary word."""
    match option, module:
        case ast.Constant(value="-m"), ast.Constant(value=str(name)):
            return name in NAMES
    return False


def _is_module(name: str) -> bool:
    path = Path(__file__).parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()
