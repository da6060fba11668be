"""Plan limits refuse files in order, report it in flags, and count nothing (interface 7, 6)."""

import pytest

from service.accounts.administration import Changes
from tests.api.conftest import NewClient
from tests.support.data import collection, feature, lakes, point
from tests.support.server import Client

MIB = 2**20


def padded(size: int) -> bytes:
    """A GeoJSON document of `size` bytes."""
    document = collection(feature(point(1, 2), n=1))
    return document + b" " * (size - len(document))


def flags(answer: dict[str, object]) -> tuple[object, object, object]:
    """The flags that clients act upon."""
    return answer["needsUpgrade"], answer["limit"], answer["paymentPastDue"]


def test_a_file_above_the_plans_cap_is_refused(new_client: NewClient) -> None:
    """On plan free, 5 MiB."""
    free = new_client("free")
    answer = free.convert("a.geojson", padded(5 * MIB + 1))
    assert answer["success"] is False
    assert flags(answer) == (True, "fileSize", False)
    assert free.convert("a.geojson", padded(5 * MIB), outputFormat="Csv")["success"] is True


def test_conversions_of_a_month_are_used_up(new_client: NewClient) -> None:
    """Ten on plan free; failures do not count; the eleventh success is refused."""
    free = new_client("free")
    assert free.convert("bad.geojson", b"{")["success"] is False
    answers = [free.convert("a.geojson", lakes(), outputFormat="Csv") for _ in range(11)]
    assert [answer["success"] for answer in answers] == [True] * 10 + [False]
    assert flags(answers[-1]) == (True, "conversions", False)


def test_data_of_a_month_is_used_up(new_client: NewClient) -> None:
    """50 MiB on plan free: ten files of 5 MiB fit, so a smaller rest is refused by `data` before `conversions`."""
    free = new_client("free")
    for _ in range(9):
        assert free.convert("a.geojson", padded(5 * MIB), outputFormat="Csv")["success"] is True
    free.change(Changes(plan="personal"))
    free.change(Changes(plan="free"))
    assert free.convert("a.geojson", padded(5 * MIB - 10), outputFormat="Csv")["success"] is True
    assert flags(free.convert("a.geojson", padded(1000))) == (True, "conversions", False)


def test_a_wallet_pays_the_price_of_each_file(new_client: NewClient) -> None:
    """Five cents plus one per started MiB; what the balance does not cover is refused; failures are free."""
    wallet = new_client(wallet_cents=13)
    assert wallet.convert("bad.geojson", b"{")["success"] is False
    assert wallet.convert("a.geojson", lakes(), endpoint="upload")["newWalletBalanceCents"] == 7
    assert flags(wallet.convert("a.geojson", padded(2 * MIB + 1))) == (True, "wallet", False)
    assert wallet.convert("a.geojson", padded(MIB + 1), endpoint="upload")["newWalletBalanceCents"] == 0
    assert flags(wallet.convert("a.geojson", lakes())) == (True, "wallet", False)


def test_an_account_without_access_may_not_convert(client: Client) -> None:
    """The limit is `access`, and no upgrade is suggested."""
    client.change(Changes(may_convert=False))
    assert flags(client.convert("a.geojson", lakes())) == (False, "access", False)
    client.change(Changes(may_convert=True))
    assert client.convert("a.geojson", lakes())["success"] is True


def test_a_payment_past_due_refuses_until_it_is_paid(client: Client) -> None:
    """`paymentPastDue` is true, and `limit` is null."""
    client.change(Changes(past_due=True))
    assert flags(client.convert("a.geojson", lakes())) == (False, None, True)
    client.change(Changes(past_due=False))
    assert client.convert("a.geojson", lakes())["success"] is True


def test_the_first_limit_in_order_is_reported(new_client: NewClient) -> None:
    """Access, then payment, then file size (interface 6)."""
    free = new_client("free")
    free.change(Changes(past_due=True, may_convert=False))
    assert flags(free.convert("a.geojson", padded(6 * MIB))) == (False, "access", False)
    free.change(Changes(may_convert=True))
    assert flags(free.convert("a.geojson", padded(6 * MIB))) == (False, None, True)
    free.change(Changes(past_due=False))
    assert flags(free.convert("a.geojson", padded(6 * MIB))) == (True, "fileSize", False)


def test_members_of_an_organization_share_its_allowance(new_client: NewClient) -> None:
    """What one member uses reduces what the others have; jobs stay with each member."""
    one, other = (new_client("team", organization="Lake Survey") for _ in range(2))
    one.convert("a.geojson", lakes())
    assert other.convert("a.geojson", lakes(), includeWallet="true")["remainingConversions"] == 5000 - 2
    assert len(other.get("/api/geo/convert/jobs").json()["jobs"]) == 1


@pytest.mark.parametrize("plan", ["free", "personal", "team", "business"])
def test_the_plan_list_is_that_of_the_specification(new_client: NewClient, plan: str) -> None:
    """Every figure of section 8 of the interface."""
    answer = new_client(plan).get("/api/geo/pricing/tiers").json()
    assert (answer["currency"], answer["maxFileSizeBytes"]) == ("usd", 104857600)
    columns = (
        "owner", "monthlyPriceUsd", "annualPriceUsd", "monthlyDataBytes", "maxFileBytes", "monthlyConversions",
        "retentionHours", "storageRegionChoice", "prioritySupport",
    )  # fmt: skip
    expected = {
        "free": ("user", 0, 0, 52428800, 5242880, 10, 4, False, False),
        "personal": ("user", 9, 90, 1073741824, 26214400, 500, 48, False, False),
        "team": ("organization", 49, 490, 10737418240, 104857600, 5000, 48, False, False),
        "business": ("organization", 199, 1990, 53687091200, 104857600, 25000, 48, True, True),
    }
    listed = {entry["id"]: tuple(entry[column] for column in columns) for entry in answer["plans"]}
    assert listed[plan] == expected[plan]
