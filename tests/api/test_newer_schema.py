"""A later version migrates the database while this one serves, whose processes end and start again."""

from pathlib import Path

import anyio
import pytest

from service.accounts.administration import Terms
from service.db.connection import open_connection
from service.db.migrate import migrate
from service.db.migrations import read_migrations
from service.db.queries import sql_directory
from tests.api.test_processes import TWO, members
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.patience import wait_until
from tests.support.server import Client, Server, create_account, running_server

PRESENT = sql_directory() / "migrations"
LAST = read_migrations(PRESENT)[-1].number
ADDS = f"{LAST + 1:04}_a_later_version.sql"
TAKES = f"{LAST + 2:04}_a_later_release.since_{LAST + 1:04}.sql"
SCRIPTS = {
    ADDS: "ALTER TABLE job ADD COLUMN later text; UPDATE plan SET monthly_conversions = 77 WHERE id = 'free';",
    TAKES: "ALTER TABLE job DROP COLUMN later;",
}
FREE = Terms(plan="free", plan_owner="user")

pytestmark = pytest.mark.xdist_group("newer_schema")


def migrate_later(directory: Path, dsn: str, *names: str) -> None:
    """Migrate the database as the later version does that has these migrations, too."""
    directory.mkdir()
    for path in PRESENT.glob("*.sql"):
        (directory / path.name).write_bytes(path.read_bytes())
    for name in names:
        (directory / name).write_text(SCRIPTS[name], "utf-8")
    anyio.run(migrate, dsn, directory)


def converts(client: Client) -> bool:
    """Whether a conversion succeeds, and is charged against the plan of the later version."""
    answer = client.convert("a.geojson", lakes(), endpoint="upload", outputFormat="Csv")
    return bool(answer["success"]) and 0 <= answer["remainingConversions"] < 77


async def _plan_of_the_later_version(dsn: str) -> bool:
    async with open_connection(dsn) as connection:
        return bool(await connection.fetchval("SELECT monthly_conversions = 77 FROM plan WHERE id = 'free'"))


def restarted(server: Server) -> None:
    """Kill a process, and wait until its parent has replaced it."""
    ready = len(server.events("process.ready"))
    members(server)[0].kill()
    wait_until(lambda: len(server.events("process.ready")) > ready)


def test_processes_of_this_version_start_again_after_a_migration_that_adds(tmp_path: Path, database_url: str) -> None:
    """Both one that its parent replaces and a whole service; neither undoes what the later version has changed."""
    with running_server(tmp_path / "parent", database_url, TWO) as server, create_account(server, FREE) as client:
        migrate_later(tmp_path / "later", database_url, ADDS)
        restarted(server)
        assert converts(client)
        assert server.events("database.newer")[0]["migrations"] == [ADDS]
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "store").symlink_to(tmp_path / "parent" / "store")
        with running_server(tmp_path / "new", database_url) as other, create_account(other, FREE) as another:
            assert converts(another)
            assert other.events("database.newer")[0]["migrations"] == [ADDS]
    assert anyio.run(_plan_of_the_later_version, database_url)


def test_no_process_of_this_version_starts_on_a_schema_that_lacks_what_it_uses(
    tmp_path: Path, database_url: str
) -> None:
    """The service ends with a sentence that names the migration and says what to run."""
    migrate_later(tmp_path / "later", database_url, ADDS, TAKES)
    message = rf"{TAKES} took away what this version uses\. Run the version that made it, or a later one\."
    with pytest.raises(AssertionError, match=message), running_server(tmp_path / "new", database_url):
        pass
    refused = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": database_url})("migrate")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert TAKES in refused.stderr


def test_commands_say_that_the_schema_is_newer(tmp_path: Path, database_url: str) -> None:
    """Those of operators refuse it; `migrate` and `doctor` find that this version can serve."""
    migrate_later(tmp_path / "later", database_url, ADDS)
    geomill = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": database_url})
    assert geomill.json("migrate") == {"applied": [], "newer": [ADDS]}
    assert "does not know but can serve with" in geomill("migrate").stdout
    audit = geomill("audit")
    assert (audit.returncode, audit.stdout, audit.stderr.count("\n")) == (1, "", 1)
    assert f"it has {ADDS}. This version can only serve with it" in audit.stderr
    doctor = geomill("doctor")
    assert doctor.returncode == 0, doctor.stdout
    [schema] = [line for line in doctor.stdout.splitlines() if line.split()[1:2] == ["schema"]]
    assert schema.split()[0] == "warn"
    assert ADDS in schema
