"""`geomill` works at any time on the running server's database, embedded or not (interface 10)."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import anyio
import httpx
import pytest

from service.db.connection import open_connection
from service.db.migrate import migrate
from service.db.queries import sql_directory
from tests.support.data import lakes
from tests.support.forked import ROOT
from tests.support.geomill import Geomill
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import Server, running_server

pytestmark = pytest.mark.xdist_group("cli")  # one server for all


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with an embedded database."""
    with running_server(tmp_path_factory.mktemp("embedded")) as server:
        yield server


@pytest.fixture
def geomill(embedded: Server) -> Geomill:
    """The command, run beside that server."""
    return Geomill(embedded.data_dir)


def tiers(server: Server, key: str) -> int:
    """The response to a key check."""
    return httpx.get(f"{server.url}/api/geo/pricing/tiers", headers={"X-API-Key": key}).status_code


def test_an_account_comes_with_a_key_that_works_at_once(embedded: Server, geomill: Geomill) -> None:
    """While a server runs on the embedded database."""
    created = geomill.json("account", "create", "--name", "Anna", "--plan", "free")
    assert set(created) == {"accountId", "name", "organizationId", "plan", "walletCents", "keyId", "apiKey"}
    assert (created["plan"], created["organizationId"], created["walletCents"]) == ("free", None, None)
    assert tiers(embedded, created["apiKey"]) == 200


def test_members_join_an_organization_by_name_or_id(geomill: Geomill) -> None:
    """The first member creates it; a member on another plan cannot join."""
    first = geomill.json("account", "create", "--name", "a", "--plan", "team", "--organization", "Surveyors")
    by_name = geomill.json("account", "create", "--name", "b", "--plan", "team", "--organization", "Surveyors")
    by_id = geomill.json(
        "account", "create", "--name", "c", "--plan", "team", "--organization", first["organizationId"]
    )
    assert first["organizationId"] == by_name["organizationId"] == by_id["organizationId"]
    refused = geomill("account", "create", "--name", "d", "--plan", "business", "--organization", "Surveyors")
    assert refused.returncode == 1
    assert "plan team" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--plan", "free", "--wallet-cents", "5"),
        (),
        ("--plan", "free", "--organization", "x"),
        ("--wallet-cents", "5", "--organization", "x"),
    ],
)
def test_terms_that_contradict_each_other_are_refused(geomill: Geomill, arguments: tuple[str, ...]) -> None:
    """In one line, with exit code 1."""
    done = geomill("account", "create", "--name", "x", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--plan", "gold"),
        ("--wallet-cents", "-1"),
        ("--wallet-cents", "ten"),
        ("--plan", "free", "--name", "not UTF-8: \udcff"),
        ("--plan", "team", "--organization", "\x1b[2Janother line\n"),
        ("--wallet-cents", f"{(1 << 63) - 1}"),  # to which the price of a conversion that fails cannot be returned
    ],
)
def test_a_value_that_cannot_be_is_refused_with_the_usage(geomill: Geomill, arguments: tuple[str, ...]) -> None:
    """With exit code 2, and without what it would do to a terminal."""
    done = geomill("account", "create", "--name", "x", *arguments)
    assert (done.returncode, "\x1b" in done.stderr) == (2, False)


def test_an_account_is_changed_and_shown(embedded: Server, geomill: Geomill) -> None:
    """Plan, access, payment and credit; `usage` shows what was used and what is left."""
    account = geomill.json("account", "create", "--name", "w", "--wallet-cents", "20")
    headers = {"X-API-Key": account["apiKey"]}
    url = f"{embedded.url}/api/geo/convert/file"
    assert httpx.post(url, headers=headers, files={"file": ("a.geojson", lakes())}).json()["success"]
    assert geomill.json("usage", account["accountId"])["walletCents"] == 14
    changed = geomill.json("account", "set", account["accountId"], "--wallet-cents", "500", "--past-due")
    assert (changed["walletCents"], changed["pastDue"]) == (500, True)
    moved = geomill.json("account", "set", account["accountId"], "--plan", "team", "--no-may-convert")
    assert (moved["plan"], moved["walletCents"], moved["mayConvert"], moved["pastDue"]) == ("team", None, False, True)
    assert moved["keptWalletCents"] == 500
    assert any("credit" in effect for effect in moved["effects"])
    usage = geomill.json("usage", account["accountId"])
    assert (usage["remainingConversions"], usage["usedConversions"], usage["walletCents"]) == (5000, 0, None)
    refused = geomill("account", "set", account["accountId"], "--wallet-cents", "5")
    assert (refused.returncode, "plan" in refused.stderr) == (1, True)


def test_a_revoked_key_is_refused_within_five_seconds(embedded: Server, geomill: Geomill) -> None:
    """Even a key that was just used; the account's other keys keep working."""
    account = geomill.json("account", "create", "--name", "k", "--plan", "free")
    second = geomill.json("key", "create", account["accountId"])
    assert tiers(embedded, account["apiKey"]) == tiers(embedded, second["apiKey"]) == 200
    assert geomill.json("key", "revoke", account["keyId"])["accountId"] == account["accountId"]
    give_up_at = time.monotonic() + 5
    while tiers(embedded, account["apiKey"]) != 401 and time.monotonic() < give_up_at:
        time.sleep(0.1)
    assert tiers(embedded, account["apiKey"]) == 401
    assert tiers(embedded, second["apiKey"]) == 200


@pytest.mark.parametrize("command", [("usage",), ("key", "create"), ("key", "revoke"), ("account", "set")])
def test_an_unknown_id_is_told(geomill: Geomill, command: tuple[str, ...]) -> None:
    """In one line, with exit code 1."""
    done = geomill(*command, str(uuid4()))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "There is no" in done.stderr


def test_accounts_and_keys_are_listed_shown_and_deleted(embedded: Server, geomill: Geomill) -> None:
    """A deleted account leaves the list and its keys stop working; its usage is still exported."""
    account = geomill.json("account", "create", "--name", "Berta", "--plan", "free")
    account_id, headers = account["accountId"], {"X-API-Key": account["apiKey"]}
    url = f"{embedded.url}/api/geo/convert/file"
    assert httpx.post(url, headers=headers, files={"file": ("a.geojson", lakes())}).json()["success"]
    listed = {one["accountId"]: one for one in geomill.json("account", "list")["accounts"]}
    assert (listed[account_id]["name"], listed[account_id]["usedConversions"]) == ("Berta", 1)
    assert geomill.json("account", "show", account_id)["plan"] == "free"
    [key] = geomill.json("key", "list", account_id)["keys"]
    assert (key["keyId"], key["revokedAt"]) == (account["keyId"], None)
    assert "--yes" in geomill("account", "delete", account_id).stderr
    assert geomill.json("account", "delete", account_id, "--yes")["erasedResults"] == 1
    assert account_id not in geomill("account", "list").stdout
    exported = geomill("usage", "--csv", account_id).stdout.splitlines()
    assert exported[0] == "day,accountId,files,conversions,bytes,cents"
    assert exported[1].split(",")[1:] == [account_id, "1", "1", str(len(lakes())), "0"]
    assert geomill.json("audit") == {"differences": []}


def test_days_in_the_wrong_order_are_refused(geomill: Geomill) -> None:
    """As by `/usage.csv`; an empty list would look as if nothing had been charged."""
    turned = geomill("usage", "--csv", "--from", "2026-11-20", "--to", "2026-11-01")
    assert (turned.returncode, turned.stdout, turned.stderr) == (2, "", "geomill: --from must not be after --to.\n")


def test_the_books_agree_while_the_server_runs(geomill: Geomill) -> None:
    """`audit` finds no differences."""
    assert geomill.json("audit") == {"differences": []}


def test_migrations_may_be_applied_again(geomill: Geomill) -> None:
    """The second run has nothing to do, and says so."""
    again = geomill("migrate")
    assert (again.returncode, again.stdout, again.stderr) == (0, "The schema is current.\n", "")
    assert geomill.json("migrate") == {"applied": [], "newer": []}


def test_the_version_is_the_packages(embedded: Server, geomill: Geomill) -> None:
    """The command and the metrics report the version in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert geomill("--version").stdout == f"geomill {project['version']}\n"
    shown = httpx.get(f"{embedded.url}/metrics").text
    assert f'geomill_build_info{{version="{project["version"]}"}} 1.0' in shown


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("migrate", "--help")])
def test_a_command_waits_for_no_other(arguments: tuple[str, ...]) -> None:
    """The start imports nothing that only other commands need."""
    program = [sys.executable, "-X", "importtime", "-m", "service", *arguments]
    told = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True).stderr
    imported = {line.rpartition("|")[2].strip() for line in told.splitlines()}
    assert "argparse" in imported
    assert not imported & {"hypercorn", "starlette", "service.cli.convert", "service.cli.serve"}


def test_without_a_command_the_usage_is_shown(geomill: Geomill) -> None:
    """Every level of commands has help."""
    assert geomill().returncode == 2
    for level in ((), ("account",), ("account", "create"), ("serve",)):
        assert geomill(*level, "--help").returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ("account", "create", "--name", "a", "--plan", "free"),
        ("audit",),
        ("usage", str(uuid4())),
        ("key", "create", str(uuid4())),
    ],
    ids=["account", "audit", "usage", "key"],
)
def test_no_command_of_operators_makes_a_database(
    tmp_path: Path, empty_database_url: str, command: tuple[str, ...]
) -> None:
    """It says that there is no database: a key that no server knows, or an empty audit, would mislead."""
    elsewhere = Geomill(tmp_path)(*command)
    assert (elsewhere.returncode, elsewhere.stdout, elsewhere.stderr.count("\n")) == (1, "", 1)
    assert "There is no database in" in elsewhere.stderr
    assert list(tmp_path.iterdir()) == []
    empty = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": empty_database_url})(*command)
    assert (empty.returncode, empty.stdout, empty.stderr.count("\n")) == (1, "", 1)
    assert "geomill migrate" in empty.stderr


def test_migrate_makes_a_database_and_doctor_does_not(tmp_path: Path) -> None:
    """Afterwards, commands work; before, doctor says that this host can serve, which would create the database."""
    geomill = Geomill(tmp_path)
    before = geomill("doctor")
    assert before.returncode == 0, before.stdout + before.stderr
    for expected in ("GDAL", "Shapefile", "resource limits", "creates a database", "This host can serve"):
        assert expected in before.stdout
    assert not (tmp_path / "postgres").exists()
    migrated = geomill("migrate")
    assert (migrated.returncode, migrated.stderr) == (0, "")
    every = sorted(path.name for path in (sql_directory() / "migrations").glob("*.sql"))
    assert migrated.stdout.splitlines() == [*(f"Applied {name}." for name in every), "The schema is current."]
    assert geomill.json("audit") == {"differences": []}
    assert "all that this version has" in geomill("doctor").stdout


async def _take_for_unmigrated(dsn: str) -> None:
    await migrate(dsn)
    async with open_connection(dsn) as connection:
        await connection.execute("DELETE FROM migration")


def test_a_command_never_changes_the_schema(tmp_path: Path, empty_database_url: str) -> None:
    """If the database lacks a migration, the command says what to do."""
    anyio.run(_take_for_unmigrated, empty_database_url)
    done = Geomill(tmp_path, {"GEOMILL_DATABASE_URL": empty_database_url})("audit")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Run `geomill migrate` first" in done.stderr


def test_output_that_nobody_reads_on_is_no_defect() -> None:
    """As in `geomill settings | head -1`, whose head ends first."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "service", "settings"]
        done = subprocess.run(command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_a_command_that_is_interrupted_while_it_starts_says_nothing(tmp_path: Path) -> None:
    """Ctrl-C during its imports ends it as a signal does, and no traceback is shown."""
    (tmp_path / "asyncpg.py").write_text("import time\nprint('imported', flush=True)\ntime.sleep(1000)")
    heeded = ("env", "--default-signal=INT")  # unlike that of tests which run in the background
    command = [*heeded, sys.executable, "-m", "service", "account", "list"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"imported\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE_SECONDS) == (b"", b"")
    assert process.returncode == -signal.SIGINT
