"""The private copy of PROJ's database."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service.engine.proj import DATABASE, private_database


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = tmp_path / "share" / DATABASE
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE crs (code INTEGER)")
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON crs BEGIN SELECT 1; END")
        connection.execute("INSERT INTO crs VALUES (4326)")
        connection.commit()
    return path


def test_the_copy_has_the_same_rows_and_no_triggers(original: Path, tmp_path: Path) -> None:
    """It is made once."""
    home = private_database(original, tmp_path / "proj")
    with closing(sqlite3.connect(home / DATABASE)) as connection:
        assert connection.execute("SELECT code FROM crs").fetchall() == [(4326,)]
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone() == (0,)
    made = (home / DATABASE).stat().st_mtime_ns
    assert private_database(original, tmp_path / "proj") == home
    assert (home / DATABASE).stat().st_mtime_ns == made


def test_a_damaged_original_is_used_as_it_is(tmp_path: Path) -> None:
    """The copy saves time, and nothing depends on it."""
    broken = tmp_path / DATABASE
    broken.write_bytes(b"not a database" * 100)
    assert private_database(broken, tmp_path / "proj") == tmp_path
    assert [path for path in (tmp_path / "proj").rglob("*") if path.is_file()] == []


def test_a_read_only_data_directory_is_no_failure(original: Path, tmp_path: Path) -> None:
    """The original is used."""
    (tmp_path / "proj").write_text("in the way")
    assert private_database(original, tmp_path / "proj") == original.parent
