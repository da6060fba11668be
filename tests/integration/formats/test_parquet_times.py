"""Times of Parquet files, whose columns may be in zones that have names."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.formats.pipeline import Pipeline

ZONES = {
    "Europe/Berlin": "2020-07-01T12:00:00.123Z",
    "+05:07": "2020-07-01T12:00:00.123Z",
    "+05:30": "2020-07-01T17:30:00.123+05:30",
    "UTC": "2020-07-01T12:00:00.123Z",
    "Z": "2020-07-01T12:00:00.123Z",
    "Etc/GMT": "2020-07-01T12:00:00.123Z",
    None: "2020-07-01T12:00:00.123",
}
"""The zone of a column, and how GeoJSON has 12:00:00.123 UTC on 1 July 2020 of it."""
MOVED = ("Europe/Berlin", "+05:07")


@pytest.mark.parametrize("zone", ZONES)
async def test_times_of_every_zone_remain_the_same_moments(
    pipeline: Pipeline, tmp_path: Path, zone: str | None
) -> None:
    """The driver left out a zone with a name and kept the time in UTC, which was hours late or early then."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"at": pa.array([1593604800123, None], pa.timestamp("ms", tz=zone))}), path)
    done = await pipeline.to("GeoJson", path)
    features = json.loads(done.path.read_text())["features"]
    assert [feature["properties"]["at"] for feature in features] == [ZONES[zone], None]
    told = [warning for warning in done.output.warnings if "(1 value of 'at')" in warning]
    assert (len(told), len(done.output.warnings)) == ((1, 1) if zone in MOVED else (0, 0)), done.output.warnings
