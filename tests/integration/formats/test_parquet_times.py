"""Times of Parquet files, whose columns may be in zones that have names."""

import json
import struct
from datetime import datetime
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
POINT = struct.pack("<BIdd", 1, 1, 7, 50)
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


UNTIL_1970 = (
    *("1969-12-31T23:59:59.999", "1969-12-31T23:59:59.001", "1969-12-31T23:59:59", "1969-12-31T23:59:58.500"),
    *("1969-06-01T12:30:59.500", "1899-12-31T23:59:59.750", "0001-01-02T00:00:59.001", "1970-01-01T00:00:59.500"),
)


@pytest.mark.parametrize(("unit", "zone"), [("ms", None), ("us", "UTC"), ("us", "-03:15"), ("ns", "Europe/Berlin")])
@pytest.mark.parametrize("has_geometry", [True, False])
async def test_the_last_second_of_a_minute_before_1970_is_kept(
    pipeline: Pipeline, tmp_path: Path, unit: str, zone: str | None, has_geometry: bool
) -> None:
    """Fractions of it became the next minute, and lost their zone."""
    moments = [text for text in UNTIL_1970 if unit != "ns" or text > "1677"] + [None]
    naive = pa.array([text and datetime.fromisoformat(text) for text in moments], pa.timestamp("us"))
    values = naive.cast(pa.timestamp(unit)).cast(pa.int64()).cast(pa.timestamp(unit, zone))
    table = pa.table({"geometry": pa.array([POINT] * len(moments)), "at": values})
    path = tmp_path / "a.parquet"
    geo = json.dumps({"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}})
    pq.write_table(table.replace_schema_metadata({"geo": geo}) if has_geometry else table.drop(["geometry"]), path)
    done = await pipeline.to("GeoJson", path)
    read = [feature["properties"]["at"] for feature in json.loads(done.path.read_text())["features"]]
    assert [text and datetime.fromisoformat(text) for text in read] == [
        text and (datetime.fromisoformat(text) if zone is None else datetime.fromisoformat(f"{text}+00:00"))
        for text in moments
    ]


async def test_times_in_lists_and_structures_keep_all_digits(pipeline: Pipeline, tmp_path: Path) -> None:
    """Python's times have neither nanoseconds nor years beyond 9999: such files counted as damaged."""
    moments = pa.array([[1593604800123456789], None, []], pa.list_(pa.timestamp("ns", "Europe/Berlin")))
    inner = pa.struct({"at": pa.time64("ns"), "far": pa.date32()})
    values = {
        "listed": moments,
        "paired": moments.cast(pa.large_list(pa.timestamp("ns", "+02:00"))),
        "mapped": pa.array([[("a", {"at": 1, "far": 5_000_000})], None, []], pa.map_(pa.string(), inner)),
        "fixed": pa.array([[1000, 2000], None, [3000, None]], pa.list_(pa.timestamp("ms"), 2)),
    }
    pq.write_table(pa.table(values), tmp_path / "a.parquet")
    done = await pipeline.to("GeoJson", tmp_path / "a.parquet")
    assert [feature["properties"] for feature in json.loads(done.path.read_text())["features"]] == [
        {
            "listed": ["2020-07-01 12:00:00.123456789+0000"],
            "paired": ["2020-07-01 14:00:00.123456789+0200"],
            "mapped": [["a", {"at": "00:00:00.000000001", "far": "15659-07-15"}]],
            "fixed": ["1970-01-01 00:00:01.000", "1970-01-01 00:00:02.000"],
        },
        dict.fromkeys(values),
        {"listed": [], "paired": [], "mapped": [], "fixed": ["1970-01-01 00:00:03.000", None]},
    ]
    (told,) = done.facts.warnings
    assert told.startswith("Times in zones that have names, or ")
    assert "(1 value of 'listed'), were converted to UTC" in told
