"""Migrations run while the previous version serves, so they add things and remove none."""

import re

import pytest

from service.db.queries import sql_directory

TAKES_AWAY = re.compile(
    r"^[^-\n]*\b(DROP\s+(?!NOT NULL|DEFAULT|CONSTRAINT|TRIGGER)|RENAME\b|SET NOT NULL|ALTER COLUMN \w+ TYPE)",
    re.IGNORECASE | re.MULTILINE,
)
CONTRACT = re.compile(r"^-- contract: \S", re.MULTILINE)
"""Says since which version nothing uses what the migration removes."""


def offends(script: str) -> bool:
    """Whether a script removes something without stating that nothing uses it."""
    return bool(TAKES_AWAY.search(script)) and not CONTRACT.search(script)


def test_no_migration_takes_away_what_the_previous_version_uses() -> None:
    """A column, table, view or function is removed only in a release after the last one that used it."""
    scripts = {path.name: path.read_text("utf-8") for path in (sql_directory() / "migrations").glob("*.sql")}
    assert len(scripts) >= 4
    assert [name for name, script in scripts.items() if offends(script)] == []


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("DROP VIEW job_record;", True),
        ("ALTER TABLE job\n  DROP COLUMN attempt;", True),
        ("ALTER TABLE job RENAME attempt TO turn;", True),
        ("ALTER TABLE job ALTER COLUMN details SET NOT NULL;", True),
        ("-- contract: nothing since 0.2.0\nDROP VIEW job_record;", False),
        ("ALTER TABLE job ALTER COLUMN details DROP NOT NULL; -- DROP VIEW", False),
        ("CREATE TABLE a ();", False),
    ],
)
def test_what_takes_something_away_is_recognized(script: str, expected: bool) -> None:
    """By SQL keywords outside comments."""
    assert offends(script) is expected
