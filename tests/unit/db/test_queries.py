"""Parsing of statement files."""

from pathlib import Path

import pytest

from service.db import queries


def test_blocks_become_statements_by_name() -> None:
    """Under its name, without the comment above it but with comments inside."""
    text = """\
-- Statements of a test.

-- name: first
-- What it does,
-- in two lines.
SELECT 1
  -- inside
  FROM t;

-- name: second
-- Another.
SELECT 'x -- y';
"""
    assert queries.parse(text, "x.sql") == {
        "first": "SELECT 1\n  -- inside\n  FROM t;",
        "second": "SELECT 'x -- y';",
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1;", "must follow"),
        ("", "must follow"),
        ("SELECT 1;\n-- name: a\n-- b\nSELECT 2;", "must follow"),
        ("-- name: a\n-- b\nSELECT 1;\n-- name: a\n-- b\nSELECT 2;", "`a` occurs twice"),
        ("-- name: a\n-- b\n", "`a` has no statement"),
        ("-- name: a\n-- b\n\n-- name: c\n-- d\nSELECT 1;", "`a` has no statement"),
        ("-- name: a\nSELECT 1;", "`a` lacks the comment"),
        ("-- name: a\n--\nSELECT 1;", "`a` lacks the comment"),
        ("-- name:\n-- b\nSELECT 1;", "is not a valid name"),
        ("-- name: a-b\n-- c\nSELECT 1;", "`a-b` is not a valid name"),
    ],
)
def test_badly_formed_file_is_refused(text: str, complaint: str) -> None:
    """The error names the file and the block."""
    with pytest.raises(queries.QueryFileError, match=rf"^x\.sql: .*{complaint}"):
        queries.parse(text, "x.sql")


def test_project_files_are_well_formed() -> None:
    """Every file of the project loads."""
    files = sorted((queries.sql_directory() / "queries").glob("*.sql"))
    assert files
    for path in files:
        assert queries.load(path.stem)


def test_loaded_statements_cannot_be_changed(tmp_path: Path) -> None:
    """One caller's changes cannot affect another."""
    (tmp_path / "x.sql").write_text("-- name: a\n-- b\nSELECT 1;")
    loaded = queries.load("x", tmp_path)
    with pytest.raises(TypeError):
        loaded["a"] = "DROP TABLE t"  # type: ignore[index]  # that is what is tried
    assert queries.load("x", tmp_path) is loaded
