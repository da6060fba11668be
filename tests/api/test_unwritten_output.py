"""What a command does whose output cannot be written, or which ends before it is: no key exists that nobody has."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from service.db.connection import open_connection
from tests.support.forked import ROOT
from tests.support.geomill import Geomill
from tests.support.patience import PATIENCE_SECONDS, polls

OPEN_TRANSACTIONS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
"""


class Owner:
    """The command on a database with an account, and every command that prints a new key."""

    def __init__(self, directory: Path, dsn: str) -> None:
        self.dsn = dsn
        self.geomill = Geomill(directory, {"GEOMILL_DATABASE_URL": dsn})
        assert self.geomill("migrate").returncode == 0
        self.account = self.geomill.json("account", "create", "--name", "owner", "--plan", "free")["accountId"]
        self.creations = {
            "account": ("account", "create", "--name", "nobody", "--plan", "team", "--organization", "nobody's"),
            "key": ("key", "create", self.account),
        }

    def has_one_key(self) -> bool:
        """Whether the account is the only one, and has the only key."""
        accounts = [account["accountId"] for account in self.geomill.json("account", "list")["accounts"]]
        return accounts == [self.account] and len(self.geomill.json("key", "list", self.account)["keys"]) == 1

    def command(self, *arguments: str) -> list[str]:
        """The command line, for a process that shares no streams with others."""
        return [sys.executable, "-m", "service", *arguments]


@pytest.fixture
def owner(tmp_path: Path, database_url: str) -> Owner:
    """An account with one key."""
    return Owner(tmp_path, database_url)


@pytest.mark.parametrize("kind", ["account", "key"])
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["lines", "JSON"])
@pytest.mark.parametrize("stream", [">/dev/full", "| true", ">&-"], ids=["full", "no reader", "closed"])
def test_a_key_that_cannot_be_printed_is_not_created(
    owner: Owner, tmp_path: Path, kind: str, form: tuple[str, ...], stream: str
) -> None:
    """The command says so."""
    line = f'{{ sleep 0.1; "$@" 2>{tmp_path}/told; echo $? >{tmp_path}/code; }} {stream}'
    command = owner.command(*owner.creations[kind], *form)
    subprocess.run(("bash", "-c", line, "bash", *command), cwd=ROOT, env=owner.geomill.environment, check=False)
    told = (tmp_path / "told").read_text()
    assert ((tmp_path / "code").read_text(), told.count("\n")) == ("1\n", 1), told
    assert "Nothing was created" in told
    assert owner.has_one_key()


async def _open_transactions(dsn: str) -> int:
    async with open_connection(dsn) as connection:
        count: int = await connection.fetchval(OPEN_TRANSACTIONS)
        return count


@pytest.mark.parametrize("kind", ["account", "key"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_key_that_is_not_printed_when_its_command_ends_is_not_created(
    owner: Owner, kind: str, number: signal.Signals
) -> None:
    """Here its output is full, and is read no further."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        with suppress(BlockingIOError):
            while True:
                os.write(writer, bytes(select.PIPE_BUF))
        os.set_blocking(writer, True)
        command = owner.command(*owner.creations[kind])
        with subprocess.Popen(command, cwd=ROOT, env=owner.geomill.environment, stdout=writer) as process:
            for _ in polls(PATIENCE_SECONDS):
                if anyio.run(_open_transactions, owner.dsn):
                    break
            process.send_signal(number)
        assert process.returncode == -number
    finally:
        os.close(reader)
        os.close(writer)
    assert owner.has_one_key()


@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "at once"])
def test_a_change_whose_report_cannot_be_written_is_told_as_made(owner: Owner, buffered: str) -> None:
    """Its caller knows that it need not be repeated."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            owner.command("account", "set", owner.account, "--past-due"),
            cwd=ROOT,
            env={**owner.geomill.environment, "PYTHONUNBUFFERED": buffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "is done, but its output cannot be written" in done.stderr
    assert owner.geomill.json("account", "show", owner.account)["pastDue"]
