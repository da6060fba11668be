"""The modules as a whole: what they know of each other, and what they call their classes."""

import ast
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import bench
import sandbox
import service

pytestmark = pytest.mark.no_cover  # they run nothing of what they read


def modules() -> dict[str, Path]:
    """All modules of the product and the bench, by name."""
    found = {}
    for package in (service, sandbox, bench):
        root = Path(str(package.__file__)).parent
        for path in root.rglob("*.py"):
            parts = path.relative_to(root.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one imports when it is loaded, or for type checkers."""
    named = set[str]()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            named.update(name if name in known else node.module for name in inside)
    return named & known.keys()


def test_no_module_leads_back_to_itself() -> None:
    """Nor do imports for type checkers, but for the entry point, which loads on demand what an application asks for."""
    known = modules()
    del known["service"]
    TopologicalSorter({name: imported(path, known) - {name} for name, path in known.items()}).prepare()


def test_no_two_classes_share_a_name() -> None:
    """A name in a traceback, a type or a sentence means one class of the product and the bench."""
    nodes = (node for path in modules().values() for node in ast.walk(parsed(path)))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
