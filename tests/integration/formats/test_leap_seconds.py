"""Leap seconds, as in 2016-12-31T23:59:60Z: kept, or told with the first."""

from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

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


@pytest.mark.parametrize("has_sessions", [True, False])
@pytest.mark.parametrize("target", TARGETS)
async def test_leap_seconds_are_kept_or_told(
    converters: Converters, tmp_path: Path, target: str, *, has_sessions: bool
) -> None:
    """From GeoJSON, and from a GeoPackage that holds them."""
    pipeline = Pipeline(converters, has_sessions=has_sessions)
    rows = [point(1, 2, t=BEFORE), point(1, 2, t=LEAP)]
    source = write_geojson(tmp_path / "a.geojson", rows)
    sources = [source, (await pipeline.to("GeoPackage", source)).path][: 1 if target == "GeoPackage" else 2]
    became, expected = TARGETS[target]
    for given in sources:
        done = await pipeline.to(target, given)
        told = [warning for warning in done.output.warnings if "leap seconds" in warning]
        assert [warning.endswith(expected) for warning in told] == [True] * bool(expected)
        back = await pipeline.to("GeoJson", done.path, **({"source_epsg": 4326} if target == "Xlsx" else {}))
        properties = readers.geojson(back.path)[1]["properties"]
        assert properties == ({} if became is None else {"t": became})
