"""Times come out the same, and are told the same, whether one run converts them or several through the work file."""

import random
import shutil
from collections.abc import Sequence
from mmap import PAGESIZE as PAGE

import pytest

from service.blocking import INLINE_BYTES
from service.engine.convert import OddTimes
from service.engine.environment import MEMORY_DRIVERS
from service.engine.jailed.zones import count_odd_times
from tests.integration.formats.samples import point
from tests.integration.formats.test_sessions import TARGETS, Ways, as_possible_source, as_source, ways
from tests.support.converters import Converters

__all__ = ["ways"]
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
DAYS = (
    "2020-02-03",
    "0001-01-01",
    "0999-12-31",
    "1899-12-31",
    "1900-02-28",
    "1900-03-01",
    "1969-12-31",
    "1970-01-01",
    "9999-12-31",
)
HOURS = ("00:00:00", "03:04:05", "12:30:59", "23:59:59")
FRACTIONS = ("", ".0", ".5", ".123", ".999", ".1234", ".9996", ".000001")
ZONES = ("", "Z", "+00:00", "-00:00", "+01:00", "-05:30", "+05:45", "+14:00", "-12:00", "+0200", "+02", "+07:07")
ODD = (
    "2020-02-30T01:02:03Z",
    "2020-06-30T23:59:60Z",
    "2020-01-02T24:00:00Z",
    "2020-13-01T00:00:00Z",
    "2020-01-02 03:04:05",
    "2020/01/02 03:04:05",
)
SEEDS = range(2)
SOURCES = ("geojson", "gpkg", "fgb", "csv", "gml")


def moment(chance: random.Random, *, is_plain: bool) -> str:
    """A time; a plain one is whole seconds or milliseconds of the day, in a zone of quarters of an hour."""
    fractions, zones = (FRACTIONS[:5], ZONES[:9]) if is_plain else (FRACTIONS, ZONES)
    parts = chance.choice(DAYS), "T", chance.choice(HOURS), chance.choice(fractions), chance.choice(zones)
    return "".join(parts)


def row(chance: random.Random) -> dict[str, object]:
    """Columns of times, of days and times, of times and texts, and of times that few programs accept."""
    return {
        "plain": moment(chance, is_plain=True),
        "universal": f"{chance.choice(DAYS)}T{chance.choice(HOURS)}Z",
        "few": chance.choice([None, moment(chance, is_plain=True)]),
        "any": moment(chance, is_plain=chance.random() < 0.5),
        "days": chance.choice([chance.choice(DAYS), moment(chance, is_plain=True)]),
        "texts": chance.choice(["a text", "", moment(chance, is_plain=True)]),
        "odd": chance.choice([*ODD, moment(chance, is_plain=True)]),
    }


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("seed", SEEDS)
async def test_both_ways_give_the_same_times(ways: Ways, kind: str, seed: int) -> None:
    """Bytes, warnings, facts and refusals."""
    chance = random.Random(seed)
    rows = [row(chance) for _ in range(chance.randint(1, 4))]
    names = list(rows[0])
    wishes = {"source_epsg": 4326} if kind == "csv" else {}
    for columns in (names, *([name] for name in chance.sample(names, 3))):
        features = [point(x, 2, **{name: one[name] for name in columns}) for x, one in enumerate(rows)]
        if source := await as_possible_source(ways, kind, features):
            for output in chance.sample(TARGETS, 1 + (columns is names)):
                await ways.compare(source, output, **wishes)


@pytest.mark.parametrize(("kind", "output"), [("geojson", "GeoPackage"), ("gpkg", "GeoJson"), ("fgb", "Gml")])
async def test_times_take_one_run(ways: Ways, kind: str, output: str) -> None:
    """With and without zones and milliseconds; digits beyond those, which the work file rounds, take several."""
    steady = [point(1, 2, a="2020-01-02T03:04:05Z", b="1969-01-02T03:04:05.5+05:45"), point(3, 4, a=None, b=None)]
    rounded = [point(1, 2, a="2020-01-02T03:04:59.9996Z")]
    for content, is_one_run in ((steady, True), (rounded, False)):
        source = await as_source(ways, kind, content)
        assert (await ways.compare(source, output) == 1) is is_one_run


async def test_texts_that_are_times_take_one_run(ways: Ways) -> None:
    """As those of GML without a schema, also with milliseconds and trailing zeros."""
    rows = [point(1, 2, a="2020-01-02T03:04:05Z", b="1969-01-02T03:04:05"), point(3, 4, a="2020-01-02T03:04:05.5000Z")]
    assert await ways.compare(await as_source(ways, "gml", rows), "GeoPackage") == 1


async def test_zones_are_counted_as_the_program_counts_them(converters: Converters) -> None:
    """The open run reads the bytes of a file by rules of its own, wherever its mapping ends."""
    chance = random.Random(1)
    parts = (
        "",
        "0",
        "9",
        *"1234.:+-/TZ ",
        ":04",
        ":05.",
        "-05",
        "+05:07",
        "-0530",
        ":15",
        ":6",
        "2020-01-02T03",
        "\0",
        "é",
    )
    whole = (
        "2020-01-02T03:04:05.123+05:07",
        "2020/01/02 03:04-0207",
        "2020-01-02T03:04:05.+05:07",
        "2020-01-02T03:04:05.1-08:59:1",
    )
    async with converters.open_run(MEMORY_DRIVERS) as (held, directory):
        counts = list[tuple[int, int]]()
        for number in range(100):
            texts = chance.choices(parts, k=1000) + [_spoiled(chance, time, parts) for time in whole * 60]
            chance.shuffle(texts)
            content = "".join(texts).encode()
            path = directory / f"{number}.txt"
            path.write_bytes(content[: PAGE * (len(content) // PAGE)] if number % 2 else content + whole[0].encode())
            counted = await held.ask(OddTimes, "zones", path.name)
            counts.append((counted.count, count_odd_times([path])))
    assert [ours for ours, _ in counts] == [theirs for _, theirs in counts]
    assert min(ours for ours, _ in counts) > 0


def _spoiled(chance: random.Random, time: str, parts: Sequence[str]) -> str:
    """A time, in most cases with something else in one place."""
    place = chance.randrange(2 * len(time))
    return time[:place] + chance.choice(parts) + time[place + chance.randint(0, 1) :]


async def test_times_in_odd_zones_are_told_by_the_run_that_converts(ways: Ways) -> None:
    """Also in a large file, which the gateway does not read by itself."""
    odd = [point(1, 2, at="2020-01-02T03:04:05+05:07", text="x" * 1000)] * 300
    source = await as_source(ways, "gpkg", odd)
    assert source.stat().st_size > INLINE_BYTES
    source.write_bytes(source.read_bytes().replace(b"+05:00", b"+05:07"))
    assert await ways.compare(source, "GeoJson") == 1
