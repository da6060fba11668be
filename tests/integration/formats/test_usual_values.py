"""Queries about the values of a database pass over usual ones, for which no exact condition holds."""

import random
import shutil
from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta

from service.engine.jailed.declared import BEYOND_32, COLUMNS_A_CALL, GEOPACKAGE, Condition, finding
from service.engine.mistyped import SHORT_INTEGER
from service.engine.session import Answer
from tests.integration.formats.editing import edited
from tests.integration.formats.test_session_times import DAYS, FRACTIONS, HOURS, ODD, ZONES
from tests.support.converters import Converters

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
MOMENTS = [
    f"{day}{between}{hour}{fraction}{zone}"
    for day, between, hour, fraction, zone in product(DAYS, "T ", HOURS, FRACTIONS, ZONES)
]
USUAL: Mapping[str, Sequence[object]] = {
    "t": ["", "a", "ü" * 500, "2020-01-02", "\n"],
    "b": [0, 1],
    "i": [0, -(2**31), 2**31 - 1],
    "l": [0, -(2**63), 2**63 - 1],
    "r": [0, 0.0, -1.5, 1e300, float("inf"), 2**53 - 1, -(2**53)],
    "d": ["2020-02-29", "0001-01-01", "9999-12-31", "2019-10-09"],
    "m": [
        f"{day}{between}{hour}{fraction}{zone}"
        for day, between, hour, fraction, zone in product(
            DAYS, "T ", HOURS, ("", ".000", ".123"), ("", "Z", "+00:00", "-05:30", "+14:00")
        )
    ],
    "x": [b"", b"a\0b"],
}
"""By kind: values that a query need not look at once more."""
MORE: Sequence[object] = [
    *MOMENTS,
    *ODD,
    *(
        "2019-02-29",
        "0000-01-01",
        "2020-00-01",
        "2020-1-2",
        "2020-01-02T",
        "2020-01-02T3:04:05",
        "12:00",
        "2020-01-02T03:04",
    ),
    *("2020-01-02T03:04:05 PM", "2020-01-02T03:04:05z", "2020-01-02T03:04:05.12", "2020-01-02T03:04:05.123+1:00"),
    *("2020-01-02\0", "2020-01-02T03:04:05\0", "a\0", "\0", b"2020-01-02", 2, -1, 1.0, 2**31, -(2**31) - 1, 2**53 + 1),
]
CONDITIONS = sorted({(row.usual, row.lost) for row in GEOPACKAGE if row.usual})
CONDITIONS += [(SHORT_INTEGER, f"{lost} OR {BEYOND_32}") for kind, lost in CONDITIONS if kind == "l"]
"""The kinds, each with a condition that a driver changes a value of a column of such."""


class Found(Answer, frozen=True):
    """The numbers in the rows that each query finds."""

    found: tuple[tuple[tuple[Annotated[int, Meta(ge=0)], ...], ...], ...]


def damaged(text: str, chance: random.Random) -> str:
    """With another letter somewhere."""
    at = chance.randrange(len(text))
    return text[:at] + chance.choice("0159T:-. Z+\0") + text[at + 1 :]


async def ask(converters: Converters, values: Sequence[object], *queries: str) -> list[int]:
    """The first number that each query finds in a table `a` of one column `v`, which has any values."""
    async with converters.open_run(["SQLite"]) as (held, directory):
        write(directory / "a.sqlite", values)
        assert (await held.open("a.sqlite", ["SQLite"], [])).ok
        told = await held.ask(Found, "query", *queries)
    assert told.ok
    return [rows[0][0] for rows in told.found]


def write(path: Path, values: Sequence[object]) -> None:
    with edited(path) as connection:
        connection.execute("CREATE TABLE a (v)")
        connection.execute("CREATE VIEW b AS SELECT are_usual('t', v) AS u FROM a")
        connection.executemany("INSERT INTO a VALUES (?)", [(value,) for value in values])


@pytest.mark.parametrize("kind", USUAL)
async def test_usual_values_are_known(converters: Converters, kind: str) -> None:
    """With those that are missing."""
    count = f"SELECT total(are_usual('{kind}', v)) FROM a"  # noqa: S608 -- ours
    assert await ask(converters, [*USUAL[kind], None], count) == [len(USUAL[kind]) + 1]


@pytest.mark.parametrize(("kind", "lost"), CONDITIONS)
async def test_no_condition_holds_for_a_usual_value(converters: Converters, kind: str, lost: str) -> None:
    """Whatever the type that a column declares."""
    chance = random.Random(1)
    values = [*chain(*USUAL.values()), *MORE, *(damaged(text, chance) for text in MOMENTS)]
    query = f"SELECT count(*) FROM a WHERE are_usual('{kind}', v) AND ({lost.format('a.v', 'a')})"  # noqa: S608 -- ours
    assert await ask(converters, values, query) == [0]


async def test_a_value_of_any_column_is_found(converters: Converters) -> None:
    """Also if there are more columns than one call has."""
    conditions = [Condition("v", "{0} = 'x'", "l")] * (COLUMNS_A_CALL * 2 + 1)
    last = [*conditions, Condition("v", "{0} = 'y'", "l"), Condition("v", "{0} = 5")]
    queries = [finding("a", conditions), finding("a", last), finding("a", last[-1:])]
    assert await ask(converters, ["y", 1], *queries) == [0, 1, 0]
    assert await ask(converters, [5], *queries) == [0, 1, 1]


async def test_kinds_and_values_that_do_not_match_are_not_usual(converters: Converters) -> None:
    """A letter for each value, as text."""
    wrong = ("", "'tt', 'a'", "NULL, 'a'", "1, 'a'", "'?', 'a'", "x'74', 'a'", "'', 'a'")
    queries = [f"SELECT are_usual({arguments})" for arguments in wrong]
    assert await ask(converters, [1], *queries) == [0] * len(queries)


async def test_a_database_cannot_use_it(converters: Converters) -> None:
    """Other programs would refuse its view."""
    async with converters.open_run(["SQLite"]) as (held, directory):
        write(directory / "a.sqlite", ["a"])
        assert (await held.open("a.sqlite", ["SQLite"], [])).ok
        assert not (await held.ask(Answer, "query", "SELECT u FROM b")).ok
