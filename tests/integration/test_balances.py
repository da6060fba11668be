"""What is left is reported with successes, failures, refusals and repeats alike."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from service.accounts.administration import Administration, Changes
from tests.support.data import lakes
from tests.support.database_time import stop_time
from tests.support.world import World

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the shared service

BROKEN = ("a.geojson", b"{")
UNKNOWN = ("a.xyz", b"x")
GOOD = ("a.geojson", lakes())
SIZE = len(lakes())
MONTH_BYTES = 50 * 2**20


async def change(here: World, changes: Changes) -> None:
    """Change the account."""
    await Administration(here.services.database, here.clock).change_account(here.account.account_id, changes)


async def send(
    here: World,
    file: tuple[str, bytes],
    endpoint: str = "upload",
    headers: Mapping[str, str] | None = None,
    fields: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Convert a file, successfully or not."""
    response = await here.client.post(
        f"/api/geo/convert/{endpoint}", files={"file": file}, data=dict(fields or {}), headers=dict(headers or {})
    )
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def left(answer: Mapping[str, Any]) -> tuple[object, object, object]:
    """What the response says is left."""
    return answer["remainingConversions"], answer["remainingBytes"], answer["newWalletBalanceCents"]


@pytest.mark.parametrize("endpoint", ["upload", "file"])
async def test_failures_and_refusals_tell_what_is_left_of_a_plan(here: World, endpoint: str) -> None:
    """A broken, unknown or too large file, a payment past due, no access, an empty allowance."""
    asked = {"includeWallet": "true"} if endpoint == "file" else {}

    async def told(file: tuple[str, bytes]) -> tuple[object, object, object]:
        return left(await send(here, file, endpoint, fields=asked))

    assert await told(BROKEN) == (10, MONTH_BYTES, None)
    assert await told(GOOD) == (9, MONTH_BYTES - SIZE, None)
    assert await told(UNKNOWN) == await told(BROKEN) == (9, MONTH_BYTES - SIZE, None)
    assert await told(("a.geojson", b" " * (5 * 2**20 + 1))) == (9, MONTH_BYTES - SIZE, None)
    await change(here, Changes(past_due=True))
    assert await told(GOOD) == (9, MONTH_BYTES - SIZE, None)
    await change(here, Changes(past_due=False, may_convert=False))
    assert await told(GOOD) == (9, MONTH_BYTES - SIZE, None)
    await change(here, Changes(may_convert=True))
    for _ in range(9):
        await told(GOOD)
    refused = await send(here, GOOD, endpoint, fields=asked)
    assert (refused["success"], refused["limit"]) == (False, "conversions")
    assert left(refused) == (0, MONTH_BYTES - 10 * SIZE, None)


async def test_failures_and_refusals_tell_what_is_left_of_a_wallet(here: World) -> None:
    """And nothing about a plan."""
    await change(here, Changes(wallet=True, wallet_cents=7))
    assert left(await send(here, BROKEN)) == (None, None, 7)
    assert left(await send(here, GOOD)) == (None, None, 1)
    refused = await send(here, GOOD)
    assert (refused["limit"], left(refused)) == ("wallet", (None, None, 1))
    await change(here, Changes(plan="free"))
    assert left(await send(here, GOOD)) == (9, MONTH_BYTES - SIZE, None)
    assert left(await send(here, UNKNOWN)) == (9, MONTH_BYTES - SIZE, None)


async def test_repeats_and_batches_tell_it_too(here: World) -> None:
    """Whatever the outcome of the first request."""
    for number, file in enumerate((GOOD, BROKEN, UNKNOWN)):
        headers = {"Idempotency-Key": str(number)}
        first, repeat = [await send(here, file, headers=headers) for _ in range(2)]
        assert left(first) == left(repeat) == (9, MONTH_BYTES - SIZE, None)
    for _ in range(2):
        response = await here.client.post(
            "/api/geo/convert/batch",
            files=[("files", BROKEN), ("files", UNKNOWN)],
            headers={"Idempotency-Key": "batch"},
        )
        assert left(response.json()) == (9, MONTH_BYTES - SIZE, None)


async def test_nothing_is_told_that_was_not_asked_for(here: World) -> None:
    """`file` without `includeWallet` has nulls, in failures as in successes."""
    for file in (GOOD, BROKEN, UNKNOWN):
        assert left(await send(here, file, "file")) == (None, None, None)


async def test_the_month_is_the_databases_whatever_the_host_believes(here: World) -> None:
    """In a month that the host's clock has not reached, nothing is used."""
    assert (await send(here, GOOD))["remainingConversions"] == 9
    await stop_time(here.services.database, here.clock.now + timedelta(days=31))
    assert (await send(here, BROKEN))["remainingConversions"] == 10
    assert (await send(here, GOOD))["remainingConversions"] == 9
