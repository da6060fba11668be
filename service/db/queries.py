"""The statements of `sql/queries/`, by name.

A file is a sequence of blocks, each of which has a line `-- name: claim_job`, at least one line of comment that says
what the statement does, and the statement.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

import service

_BLOCK = re.compile(r"^-- name:[ \t]*(?P<name>.*?)[ \t]*$", re.MULTILINE)


_NAMES: dict[str, str] = {}


class QueryFileError(Exception):
    """A file of statements violates this format: a defect, detected at start-up."""


def sql_directory() -> Path:
    """Return the directory of the SQL: inside the installed package, or beside it in a checkout."""
    package = Path(service.__file__).parent
    installed = package / "_sql"
    return installed if installed.is_dir() else package.parent / "sql"


@cache
def load(name: str, directory: Path | None = None) -> Mapping[str, str]:
    """Read the named statements of `<directory>/<name>.sql`.

    Args:
        name: the file's name without its suffix.
        directory: the directory of the file; default: `queries` in `sql_directory()`.

    Raises:
        QueryFileError: a block has an invalid or duplicate name, no comment, or no statement.
    """
    path = (directory or sql_directory() / "queries") / f"{name}.sql"
    queries = parse(path.read_text(encoding="utf-8"), path.name)
    _NAMES.update({statement: query_name for query_name, statement in queries.items()})
    return MappingProxyType(queries)  # every caller has the same


def name_of(statement: str) -> str:
    """Return the name of a loaded statement, `other` for any other one."""
    return _NAMES.get(statement, "other")


def parse(text: str, file_name: str) -> dict[str, str]:
    """Split `text` into its statements.

    Raises:
        QueryFileError: see `load`; the message starts with `file_name`.
    """
    preamble, *parts = _BLOCK.split(text)
    if not parts or _statement(preamble):
        raise QueryFileError(f"{file_name}: a statement must follow a line `-- name: …`.")
    queries: dict[str, str] = {}
    for query_name, block in zip(parts[::2], parts[1::2], strict=True):
        where = f"{file_name}: `{query_name}`"
        if not query_name.isidentifier():
            raise QueryFileError(f"{where} is not a valid name; use letters, digits and underscores.")
        if query_name in queries:
            raise QueryFileError(f"{where} occurs twice.")
        queries[query_name] = _checked(block.strip(), where)
    return queries


def _checked(block: str, where: str) -> str:
    if not re.match(r"--[ \t]*\S", block):
        raise QueryFileError(f"{where} lacks the comment that says what it does.")
    statement = _statement(block)
    if not statement:
        raise QueryFileError(f"{where} has no statement.")
    return statement


def _statement(block: str) -> str:
    """Return `block` without its leading comment."""
    return re.sub(r"\A(?:\s*--[^\n]*(?:\n|\Z))*", "", block).strip()
