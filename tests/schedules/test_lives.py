"""Whatever happens to accounts, keys, terms, clocks and processes: all is charged once, to whom it belongs."""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.schedules.books import Books, Order, Sent, differences
from tests.schedules.lives import Lives, prepare
from tests.schedules.site import Site, running_site

SEED = int(os.environ.get("SCHEDULE_SEED", "1"))
STEPS = int(os.environ.get("SCHEDULE_STEPS", "8"))
ACCOUNT, PAYER, JOB, OTHER = (UUID(int=number) for number in range(4))
MONTH = date(2026, 5, 1)


@pytest.fixture
def site() -> Iterator[Site]:
    """A site of its own, since its clock moves."""
    with running_site() as opened:
        opened.portal.call(prepare, opened.dsn)
        yield opened


@pytest.mark.xdist_group("schedules")
@pytest.mark.timeout(600 + 20 * STEPS)
def test_everything_is_charged_once_to_whom_it_belongs(site: Site) -> None:
    """What clients have heard says what they are charged, before and after they repeat all that they may."""
    lives = Lives(site, SEED)
    lives.live(STEPS)
    before = list(differences(lives.orders, lives.books()))
    lives.repeat_all()
    lives.settle_down()
    site.sweep()
    found = [*lives.defects, *before, *differences(lives.orders, lives.books()), *site.audit()]
    assert found == [], f"{STEPS} steps of seed {SEED}"


def books(**changed: Any) -> Books:
    """Those of one file that was charged."""
    job = {"id": JOB, "original_file_name": "a", "status": "Completed", "created_at": datetime(2026, 5, 9, tzinfo=UTC)}
    charge = {
        "job_id": JOB,
        "account_id": ACCOUNT,
        "payer_id": PAYER,
        "period": MONTH,
        "conversions": 1,
        "bytes": 2,
        "cents": 0,
    }
    counter = {"payer_id": PAYER, "period": MONTH, "conversions": 1, "bytes": 2}
    tables: dict[str, list[dict[str, Any]]] = {
        "jobs": [job],
        "ledger": [charge],
        "usage": [counter],
        "payers": [{"id": PAYER, "wallet_cents": None}],
        "credit": [],
    }
    return Books(**{name: [{**row, **changed.get(name, {})} for row in rows] for name, rows in tables.items()})


def order(**changed: Any) -> Order:
    """One whose answer says that the file was converted."""
    told = [[{"jobId": str(JOB), "success": True}]]
    given = {"account_id": ACCOUNT, "files": [Sent(name="a", content=b"{}")], "told": told, **changed}
    return Order(**given)


def test_books_in_order_have_no_difference() -> None:
    """One file, one charge."""
    assert list(differences([order()], books())) == []


@pytest.mark.parametrize(
    ("orders", "changed"),
    [
        ([order()], {"ledger": {"bytes": 3}, "usage": {"bytes": 3}}),
        ([order()], {"ledger": {"cents": 6}}),
        ([order()], {"ledger": {"period": date(2026, 6, 1)}, "usage": {"period": date(2026, 6, 1)}}),
        ([order()], {"ledger": {"job_id": OTHER}}),
        ([order()], {"ledger": {"account_id": OTHER}}),
        ([order()], {"jobs": {"status": "Failed"}}),
        ([order()], {"usage": {"conversions": 2}}),
        ([order()], {"usage": {"period": date(2026, 6, 1)}}),
        ([order()], {"payers": {"wallet_cents": 1}}),
        ([], {}),
        ([order(told=[])], {}),
        ([order(told=[[{"jobId": str(OTHER), "success": False}]])], {}),
        ([order(files=[Sent(name="a", content=b"{}", can_be_converted=False)])], {}),
        ([order(key="k"), order(key="k", files=[Sent(name="b", content=b"{}")])], {}),
    ],
)
def test_the_books_tell_every_difference(orders: list[Order], changed: dict[str, dict[str, object]]) -> None:
    """An amount, a month, a job, an account or a counter that is another than it must be."""
    assert list(differences(orders, books(**changed)))


def test_a_second_charge_for_a_file_is_told() -> None:
    """Even one that all tables agree on."""
    given = books()
    again = Books(
        jobs=[*given.jobs, {**given.jobs[0], "id": OTHER}],
        ledger=[*given.ledger, {**given.ledger[0], "job_id": OTHER}],
        usage=[{**given.usage[0], "conversions": 2, "bytes": 4}],
        payers=given.payers,
        credit=given.credit,
    )
    assert [told for told in differences([order()], again) if "2 times" in told]
