"""The key of the demo account lies in a file of the data directory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.accounts.administration import Administration
from service.accounts.keys import Authenticator
from service.cli.demo import demo_key
from service.clock import utc_now
from service.db.pool import Database, open_pool
from service.metering.ledger import publish_plans


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A database with the plans, without accounts."""
    async with open_pool(database_url) as opened:
        await publish_plans(opened)
        yield opened


async def test_the_key_stays_the_same_and_private(database: Database, tmp_path: Path) -> None:
    """The database has only its hash."""
    key = await demo_key(database, tmp_path)
    assert await demo_key(database, tmp_path) == key
    assert (tmp_path / "demo.json").stat().st_mode & 0o777 == 0o600


async def test_a_key_that_cannot_be_kept_makes_no_account(database: Database, tmp_path: Path) -> None:
    """Each start would otherwise leave an account whose key nobody has."""
    with pytest.raises(FileNotFoundError):
        await demo_key(database, tmp_path / "missing")
    assert await Administration(database, utc_now).list_accounts() == []


@pytest.mark.parametrize(
    "left", [b"", b'{"apiKey":"gm_', b"\x00" * 60, b'{"apiKey":"\xff"}', b'{"apiKey":""}', b"[]"], ids=repr
)
async def test_a_damaged_file_is_replaced(database: Database, tmp_path: Path, left: bytes) -> None:
    """A killed start, or a full disk, may leave a part of it: the service starts nevertheless, with a new key."""
    path = tmp_path / "demo.json"
    path.write_bytes(left)
    path.chmod(0o644)
    key = await demo_key(database, tmp_path)
    await Authenticator(database, utc_now).authenticate(key)
    assert await demo_key(database, tmp_path) == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert [account.name for account in await Administration(database, utc_now).list_accounts()] == ["demo"]
