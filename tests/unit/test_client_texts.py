"""What clients are told names neither GDAL nor its parts: it says what is wrong and what to do."""

import ast
import re
from pathlib import Path

import pytest

from service import engine, formats, geojson

FOR_OPERATORS = {"capabilities.py", "documentation.py"}
"""What a host lacks, and how the documentation is made."""
OURS = re.compile(r"\bGDAL\b|\bOGR\b|\bogr2ogr\b|\bdriver\b")
SENTENCE = re.compile(r"\w+ \w+ \w+ ")
"""Other texts are names and arguments."""


def sentences_of(path: Path) -> list[str]:
    """The texts of a module that are sentences, but not its documentation."""
    tree = ast.parse(path.read_text("utf-8"))
    told = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    texts = [one for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return [str(one.value) for one in texts if id(one) not in told and SENTENCE.search(str(one.value))]


@pytest.mark.no_cover
def test_no_sentence_for_clients_names_a_program_of_ours() -> None:
    """In all modules that look at files, plan, convert and verify."""
    packages = (Path(str(one.__file__)).parent for one in (engine, formats, geojson))
    modules = [path for package in packages for path in package.rglob("*.py") if path.name not in FOR_OPERATORS]
    texts = [text for path in modules for text in sentences_of(path)]
    assert len(texts) > 500
    assert [text for text in texts if OURS.search(text)] == []
