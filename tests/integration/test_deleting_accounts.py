"""Deleting an account keeps the books, and removes everything that names it or its files."""

import io
import json
import zipfile
from pathlib import Path

import anyio
import anyio.to_thread
import httpx
import pytest

from service.accounts.administration import Administration, AdministrationError
from service.accounts.keys import CACHE_LIFETIME
from service.usecases.audit import audit
from service.usecases.delete_account import DELETED, AccountEraser
from service.usecases.maintenance import sweep
from tests.support.data import lakes
from tests.support.geomill import Geomill
from tests.support.locks import until_one_waits
from tests.support.world import World, world

TELLING = "the-telling-lake"


async def send(here: World, content: bytes = lakes(), key: str = "") -> httpx.Response:
    """Convert a file with recognizable name, field and key."""
    headers = {"Idempotency-Key": key} if key else {}
    content = content.replace(b"elevation", f"{TELLING}-as-a-field".encode())
    suffix = "zip" if content.startswith(b"PK") else "geojson"
    files = {"file": (f"{TELLING}.{suffix}", content)}
    return await here.client.post("/api/geo/convert/file", files=files, headers=headers, timeout=120)


def telling_archive() -> bytes:
    """An archive that is refused with the names of its files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for number in range(2):
            archive.writestr(f"{TELLING}-{number}.geojson", lakes())
    return packed.getvalue()


async def everything(here: World) -> str:
    """All rows that may contain names, as text."""
    async with here.services.database.connection() as connection:
        tables = ("account", "api_key", "job", "ledger", "idempotency_key", "organization")
        rows = [await connection.fetch(f"SELECT t::text FROM {table} t") for table in tables]  # noqa: S608 -- names of ours
    return str(rows)


async def test_the_books_stay_and_the_names_go(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For completed, failed and open jobs; requests in progress leave no name; repeating it changes nothing."""
    async with world(database_url, tmp_path) as here, anyio.create_task_group() as tasks:
        services, account_id = here.services, here.account.account_id
        administration = Administration(services.database, here.clock)
        eraser = AccountEraser(administration, services.jobs, services.ledger, services.storage, services.own_store)
        assert (await send(here, key=TELLING)).json()["success"]
        assert not (await send(here, b"{")).json()["success"]
        reached = anyio.Event()

        async def held(*_arguments: object, **_options: object) -> None:
            reached.set()
            await anyio.sleep_forever()

        monkeypatch.setitem(vars(services.storage), "put", held)
        tasks.start_soon(send, here)
        await reached.wait()
        async with services.database.connection() as connection:  # what a gateway had told workers
            await connection.execute("UPDATE job SET handover = $1 WHERE completed_at IS NOT NULL", TELLING.encode())
        before = await services.ledger.balance(account_id)
        assert TELLING in await everything(here)

        assert await eraser.delete(account_id) == 1
        monkeypatch.delitem(vars(services.storage), "put")
        assert (await send(here)).json()["error"]  # whose key was looked up just before
        assert TELLING in (await send(here, telling_archive())).json()["error"]
        await here.advance(CACHE_LIFETIME)
        assert (await send(here)).status_code == 401
        while services.runner.active:  # noqa: ASYNC110 -- its process notices
            await anyio.sleep(0.05)
        left = await everything(here)
        assert TELLING not in left
        assert TELLING.encode().hex() not in left
        assert "'a'" not in left  # the name of the account
        async with services.database.connection() as connection:
            reasons = await connection.fetch("SELECT DISTINCT error_message FROM job WHERE status = 'Failed'")
        assert DELETED in {row["error_message"] for row in reasons}
        after = await services.ledger.balance(account_id)
        assert (after.used_conversions, before.used_conversions) == (1, 2)  # the open one was released
        await sweep(services)
        assert await here.stored() == 0
        assert await audit(services.database, services.storage) == []
        assert await administration.list_accounts() == []
        with pytest.raises(AdministrationError):
            await administration.find_account(account_id)
        assert await eraser.delete(account_id) == 0


async def test_results_in_another_store_are_not_taken_for_erased(database_url: str, tmp_path: Path) -> None:
    """As if the command has the database of the service and not its store; a repeat with both erases them."""
    async with world(database_url, tmp_path / "service") as here:
        assert (await send(here)).json()["success"]
        command = ("account", "delete", str(here.account.account_id), "--yes", "--json")
        elsewhere = Geomill(tmp_path / "elsewhere", {"GEOMILL_DATABASE_URL": database_url})
        refused = await anyio.to_thread.run_sync(elsewhere, *command)
        assert (refused.returncode, "GEOMILL_S3_BUCKET" in refused.stderr) == (1, True), refused
        assert await here.stored() == 1
        assert await audit(here.services.database, here.services.storage) == []
        there = Geomill(tmp_path / "service", {"GEOMILL_DATABASE_URL": database_url})
        done = await anyio.to_thread.run_sync(there, *command)
        assert json.loads(done.stdout)["erasedResults"] == 1, done
        assert await here.stored() == 0


async def test_lost_results_keep_no_account(database_url: str, tmp_path: Path) -> None:
    """Its operator says so."""
    async with world(database_url, tmp_path / "service") as here:
        assert (await send(here)).json()["success"]
        command = ("account", "delete", str(here.account.account_id), "--yes", "--json", "--force")
        elsewhere = Geomill(tmp_path / "elsewhere", {"GEOMILL_DATABASE_URL": database_url})
        done = await anyio.to_thread.run_sync(elsewhere, *command)
        assert json.loads(done.stdout)["erasedResults"] == 1, done


async def test_an_admission_under_way_is_not_missed(database_url: str, tmp_path: Path) -> None:
    """It has read that the account may convert, and waits for its payer's usage until the account is closed."""
    async with world(database_url, tmp_path) as here, anyio.create_task_group() as tasks:
        services, account_id = here.services, here.account.account_id
        administration = Administration(services.database, here.clock)
        eraser = AccountEraser(administration, services.jobs, services.ledger, services.storage, services.own_store)
        assert (await send(here)).json()["success"]
        erased = anyio.Event()

        async def erase() -> None:
            await eraser.delete(account_id)
            erased.set()

        async with services.database.transaction() as connection:
            await connection.execute("SELECT FROM usage FOR UPDATE")
            tasks.start_soon(send, here)
            await until_one_waits(connection)
            tasks.start_soon(erase)
            with anyio.move_on_after(0.5):  # it would not have waited for as long
                await erased.wait()
        await erased.wait()
        while services.runner.active:  # noqa: ASYNC110 -- its process notices
            await anyio.sleep(0.05)
        assert TELLING not in await everything(here)
        assert await here.stored() == 0
