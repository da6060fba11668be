"""The single place that decides on limits: the function `limit_reached` (interface 6)."""

import re
from typing import Any

import msgspec

from service.db.pool import Database, open_pool
from service.metering.ledger import publish_plans
from service.metering.limits import EXPLANATIONS
from service.metering.plans import BY_ID

FREE = BY_ID["free"]
MIB = 1 << 20

STATEMENT = """
SELECT limit_reached(
    (a->>'may_convert')::boolean, (a->>'past_due')::boolean,
    CASE WHEN a ? 'plan' THEN jsonb_populate_record(NULL::plan, a->'plan') END, (a->>'size')::bigint,
    (a->>'used_conversions')::bigint, (a->>'used_bytes')::bigint, (a->>'price')::bigint, (a->>'wallet')::bigint)
  FROM (SELECT $1::jsonb) AS asked(a)
"""


def standing(**changes: Any) -> dict[str, Any]:
    """An account on plan free with half of everything used, and a small file."""
    half = {"used_conversions": 5, "used_bytes": 25 * MIB, "size": 1, "price": 6}
    return {"may_convert": True, "past_due": False, "plan": msgspec.structs.asdict(FREE), **half, **changes}


def wallet(cents: int) -> dict[str, Any]:
    """An account with prepaid credit, which has no plan."""
    return {name: value for name, value in standing(wallet=cents).items() if name != "plan"}


async def reached(database: Database, asked: dict[str, Any]) -> str | None:
    """The limit that refuses."""
    async with database.connection() as connection:
        name: str | None = await connection.fetchval(STATEMENT, asked)
    return name


CASES: list[tuple[dict[str, Any], str | None]] = [
    (standing(size=5 * MIB), None),
    (standing(size=5 * MIB + 1), "fileSize"),
    (standing(used_conversions=9), None),
    (standing(used_conversions=10), "conversions"),
    (standing(used_bytes=50 * MIB - 1), None),
    (standing(used_bytes=50 * MIB), "data"),
    (standing(may_convert=False), "access"),
    (standing(may_convert=None), "access"),
    (standing(past_due=True), "payment"),
    (wallet(6), None),
    (wallet(5), "wallet"),
    (wallet(0), "wallet"),
    ({**wallet(6), "size": 1 << 40, "used_bytes": 1 << 60, "used_conversions": 1 << 30}, None),
]


async def test_a_limit_refuses_exactly_above_it(database_url: str) -> None:
    """What still fits is admitted; prepaid credit must cover the price, and has no other limit."""
    async with open_pool(database_url, max_size=1) as database:
        assert [await reached(database, asked) for asked, _ in CASES] == [expected for _, expected in CASES]


async def test_the_first_limit_that_refuses_is_named(database_url: str) -> None:
    """When one reason is removed, the next one shows."""
    asked = standing(may_convert=False, past_due=True, size=6 * MIB, used_conversions=10, used_bytes=50 * MIB)
    named = []
    async with open_pool(database_url, max_size=1) as database:
        for mended in ({"may_convert": True}, {"past_due": False}, {"size": 1}, {"used_conversions": 0}, {}):
            named.append(await reached(database, asked))
            asked |= mended
    assert named == ["access", "payment", "fileSize", "conversions", "data"]


async def test_every_limit_that_the_database_can_name_is_explained(database_url: str) -> None:
    """In the same order, and no others."""
    async with open_pool(database_url, max_size=1) as database, database.connection() as connection:
        source: str = await connection.fetchval("SELECT prosrc FROM pg_proc WHERE proname = 'limit_reached'")
    assert re.findall(r"THEN '(\w+)'", source) == list(EXPLANATIONS)


async def test_a_plan_is_published_with_every_column_that_the_table_has(database_url: str) -> None:
    """Publishing again gives the same values as the code."""
    async with open_pool(database_url, max_size=1) as database:
        for _ in range(2):
            await publish_plans(database)
        async with database.connection() as connection:
            rows = {row["id"]: dict(row) for row in await connection.fetch("SELECT * FROM plan")}
            await connection.execute("UPDATE plan SET max_file_bytes = 1 WHERE id = 'free'")
        await publish_plans(database)
        async with database.connection() as connection:
            assert await connection.fetchval("SELECT max_file_bytes FROM plan WHERE id = 'free'") == FREE.max_file_bytes
    assert rows == {plan.id: {name: getattr(plan, name) for name in rows[plan.id]} for plan in BY_ID.values()}
