"""Leap seconds, as in 2016-12-31T23:59:60Z: kept, or told with the first."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.editing import edited
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point

LEAP, BEFORE = "2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"
AFTER = "such as 23:59:60; 1 value of 't' became the next second. The first is feature 2."
MISSING = "such as 23:59:60; 1 value of 't' became missing. The first is feature 2."
TARGETS = {
    "GeoParquet": ("2017-01-01T00:00:00Z", AFTER),
    "OpenFileGDB": ("2017-01-01T00:00:00Z", AFTER),
    "Xlsx": ("2017-01-01T00:00:00", AFTER),
    "MapInfo": (None, MISSING),
    "GeoPackage": (LEAP, ""),
    "FlatGeobuf": (LEAP, ""),
    "Gml": (LEAP, ""),
}
"""What targets make of a leap second, and what they tell of it."""


@pytest.mark.parametrize("target", TARGETS)
async def test_leap_seconds_are_kept_or_told(either: Pipeline, tmp_path: Path, target: str) -> None:
    """From GeoJSON, and from a GeoPackage that holds them."""
    rows = [point(1, 2, t=BEFORE), point(1, 2, t=LEAP)]
    source = write_geojson(tmp_path / "a.geojson", rows)
    sources = [source, (await either.to("GeoPackage", source)).path][: 1 if target == "GeoPackage" else 2]
    became, expected = TARGETS[target]
    for given in sources:
        done = await either.to(target, given)
        told = [warning for warning in done.output.warnings if "leap seconds" in warning]
        assert [warning.endswith(expected) for warning in told] == [True] * bool(expected)
        back = await either.to("GeoJson", done.path, **({"source_epsg": 4326} if target == "Xlsx" else {}))
        properties = readers.geojson(back.path)[1]["properties"]
        assert properties == ({} if became is None else {"t": became})


ROUNDED_UP = {
    "2020-01-02T10:00:59.9996Z": "2020-01-02T10:01:00Z",
    "2019-12-31T23:59:59.9996+05:30": "2020-01-01T00:00:00+05:30",
    "2020-02-28T23:59:59.9999-08:00": "2020-02-29T00:00:00-08:00",
    "1900-12-31T23:59:59.9996Z": "1901-01-01T00:00:00Z",
    "2020-12-31T23:59:59.999999Z": "2021-01-01T00:00:00Z",
}
"""Times, and what they are with milliseconds."""
CUT = "2020-12-31T23:59:59.999Z"
"""What newer releases make of the last."""


def with_times(directory: Path, kind: str, times: Iterable[str]) -> Path:
    """A file with features at `times`."""
    path = directory / f"a.{kind}"
    if kind == "geojson":
        return write_geojson(path, [point(1, 2, t=time) for time in times])
    if kind == "csv":
        path.write_text("\n".join(["lon,lat,t", *(f"1,2,{time}" for time in times)]))
        return path
    with edited(path) as connection:
        connection.execute("CREATE TABLE a (t DATETIME, n INTEGER)")
        connection.executemany("INSERT INTO a VALUES (?, 1)", [(time,) for time in times])
    return path


async def times_of(pipeline: Pipeline, path: Path) -> list[object]:
    """The times in a file."""
    back = await pipeline.to("GeoJson", path)
    found = [feature["properties"] for feature in readers.geojson(back.path)]
    return [properties["t"] for properties in found if isinstance(properties, dict)]


@pytest.mark.parametrize(("kind", "target"), [("geojson", "FlatGeobuf"), ("csv", "GeoPackage"), ("sqlite", "Gml")])
async def test_seconds_that_are_rounded_up_to_sixty_become_the_next_minute(
    either: Pipeline, tmp_path: Path, kind: str, target: str
) -> None:
    """They became the sixtieth second of the same minute, which most programs refuse."""
    source = with_times(tmp_path, kind, ROUNDED_UP)
    done = await either.to(target, source, **({"source_epsg": 4326} if kind == "csv" else {}))
    *others, last = await times_of(either, done.path)
    assert others == list(ROUNDED_UP.values())[:-1]
    assert last == (CUT if either.engine.capabilities.is_of("3.13-") else "2021-01-01T00:00:00Z")


async def test_a_leap_second_elsewhere_on_earth_stays_one(pipeline: Pipeline, tmp_path: Path) -> None:
    """It is the last of a day in UTC."""
    leap = "2017-01-01T00:59:60+01:00"
    done = await pipeline.to("GeoPackage", with_times(tmp_path, "sqlite", [leap]))
    assert await times_of(pipeline, done.path) == [leap]


async def test_a_time_of_day_is_never_rounded_up_to_such_a_second(pipeline: Pipeline, tmp_path: Path) -> None:
    """10:20:59.9999 became 10:20:60.000, which no program reads; what the file has as 60 stays."""
    times = ["10:20:59.9999", "23:59:59.9996", "23:59:60", "23:59:59"]
    features = [point(1, 2, t=time, u="10:20:60.000", n=1) for time in times]
    features.append(point(1, 2, t=times[0], u="no time", n=1))
    done = await pipeline.to("Csv", write_geojson(tmp_path / "a.geojson", features))
    rows = readers.table(done.path)
    assert [row["t"] for row in rows] == ["10:20:59.999", "23:59:59.999", "23:59:60", "23:59:59", "10:20:59.999"]
    assert [row["u"] for row in rows] == ["10:20:60.000"] * 4 + ["no time"]
