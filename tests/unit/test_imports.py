"""Which modules know of which: nobody's imports lead back to itself, not even those for type checkers only."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import bench
import sandbox
import service


def modules() -> dict[str, Path]:
    """All modules of the product and the bench, by name."""
    found = {}
    for package in (service, sandbox, bench):
        root = Path(str(package.__file__)).parent
        for path in root.rglob("*.py"):
            parts = path.relative_to(root.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one imports when it is loaded, or for type checkers."""
    named = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            named.update(name if name in known else node.module for name in inside)
    return named & known.keys()


def test_no_module_leads_back_to_itself() -> None:
    """But for the entry point, which loads what an application asks it for when it is asked."""
    known = modules()
    del known["service"]
    TopologicalSorter({name: imported(path, known) - {name} for name, path in known.items()}).prepare()
