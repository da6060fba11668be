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
        connection.execute("CREATE TABLE alias_name (code INTEGER, alt_name TEXT)")
        connection.executemany("INSERT INTO alias_name VALUES (?, ?)", [(2, "Same"), (9, "same"), (1, "Same")])
        connection.execute(
            "CREATE TABLE other_transformation (code INTEGER, target_crs_auth_name TEXT, target_crs_code INTEGER)"
        )
        connection.executemany("INSERT INTO other_transformation VALUES (?, 'EPSG', 4326)", [(3,), (1,)])
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


@pytest.mark.parametrize(
    ("searched", "found"),
    [
        ("alias_name WHERE alt_name = 'Same'", [2, 1]),
        ("alias_name WHERE alt_name = 'Same' COLLATE NOCASE", [2, 9, 1]),
        ("other_transformation WHERE target_crs_auth_name = 'EPSG' AND target_crs_code = 4326", [3, 1]),
    ],
)
def test_what_is_looked_up_has_an_index(original: Path, tmp_path: Path, searched: str, found: list[int]) -> None:
    """What is found is in the order of the table, as without an index."""
    home = private_database(original, tmp_path / "proj")
    search = f"SELECT code FROM {searched}"  # noqa: S608 -- ours
    with closing(sqlite3.connect(home / DATABASE)) as connection:
        assert "USING INDEX geomill_" in str(connection.execute(f"EXPLAIN QUERY PLAN {search}").fetchall())
        assert [code for (code,) in connection.execute(search)] == found


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
