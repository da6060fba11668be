"""Migrations run while the previous version serves, so they add things and remove none."""

import re
from collections.abc import Sequence

import pytest

from service.db.migrations import Migration, MigrationError, unknown_to
from service.db.queries import sql_directory

TAKES_AWAY = re.compile(
    r"^[^-\n]*\b(DROP\s+(?!NOT NULL|DEFAULT|CONSTRAINT|TRIGGER)|RENAME\b|SET NOT NULL|ALTER COLUMN \w+ TYPE)",
    re.IGNORECASE | re.MULTILINE,
)
CONTRACT = re.compile(r"^-- contract: \S", re.MULTILINE)
"""Says why nothing uses what the migration removes."""


def offends(name: str, script: str) -> bool:
    """Whether a script removes something without stating that nothing uses it, and since when."""
    return bool(TAKES_AWAY.search(script)) and not (CONTRACT.search(script) and ".since_" in name)


def test_no_migration_takes_away_what_the_previous_version_uses() -> None:
    """A column, table, view or function is removed only in a release after the last one that used it."""
    scripts = {path.name: path.read_text("utf-8") for path in (sql_directory() / "migrations").glob("*.sql")}
    assert scripts
    assert [name for name, script in scripts.items() if offends(name, script)] == []


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
    assert offends("0020_tidy.since_0019.sql", script) is expected


def test_a_removal_whose_name_does_not_say_since_when_is_recognized() -> None:
    """Versions that do not know the file have only its name to go by."""
    assert offends("0020_tidy.sql", "-- contract: nothing since 0.2.0\nDROP VIEW job_record;")


def named(*names: str) -> list[Migration]:
    """Migrations as the database records them."""
    return [Migration(number, name, bytes(32)) for number, name in enumerate(names, start=1)]


KNOWN = named("0001_first.sql", "0002_second.sql")


@pytest.mark.parametrize(
    "later",
    [
        (),
        ("0003_more.sql",),
        ("0003_more.sql", "0004_still_more.sql"),
        ("0003_tidy.since_0002.sql",),
        ("0003_tidy.since_0001.sql", "0004_more.sql"),
    ],
)
def test_a_version_serves_after_later_migrations_that_leave_what_it_uses(later: Sequence[str]) -> None:
    """They add to the schema, or take away what nothing has used since its own."""
    applied = named(*(migration.name for migration in KNOWN), *later)
    assert [migration.name for migration in unknown_to(KNOWN, applied)] == list(later)


@pytest.mark.parametrize(
    ("later", "culprit"),
    [
        (("0003_more.sql", "0004_tidy.since_0003.sql"), "0004_tidy.since_0003.sql"),
        (("0003_more.sql", "0004_tidy.since_0003.sql", "0005_more.sql"), "0004_tidy.since_0003.sql"),
        (("0003_more.until_0009.sql",), "0003_more.until_0009.sql"),
        (("0003_more.sql", "four"), "four"),
    ],
)
def test_a_version_refuses_to_serve_after_one_that_took_away_what_it_uses(later: Sequence[str], culprit: str) -> None:
    """Also after one whose name says something that this version does not understand."""
    with pytest.raises(MigrationError, match=f"{re.escape(culprit)} took away what this version uses"):
        unknown_to(KNOWN, named(*(migration.name for migration in KNOWN), *later))


def test_a_version_refuses_a_database_of_another_history() -> None:
    """What comes later does not matter if what came before is not the same."""
    with pytest.raises(MigrationError, match=r"0002_second\.sql is not what was applied .* as 0002_other\.sql"):
        unknown_to(KNOWN, named("0001_first.sql", "0002_other.sql", "0003_more.sql"))
