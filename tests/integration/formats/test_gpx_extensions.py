"""Extensions of GPX are read wherever they are."""

from pathlib import Path

import pytest

from tests.integration.formats import readers
from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters

START = '<?xml version="1.0"?>\n<!-- <gpx> --><gpx version="1.1" creator="a > b" xmlns:o=\'http://o\'>'
PLAIN = '<wpt lat="1" lon="9"><name>n</name></wpt>\n'
FILES = {
    "points of tracks": ("track_points", "<trk><trkseg>{0}</trkseg></trk>", "trkpt"),
    "points of routes": ("route_points", "<rte>{0}</rte>", "rtept"),
    "waypoints behind 1,000 others": ("a", PLAIN * 1000 + "{0}", "wpt"),
    "waypoints behind the second MiB": ("a", PLAIN * ((2 << 20) // len(PLAIN)) + "{0}", "wpt"),
}
"""Where the only extensions are: the layer, what is around its points, and their element."""


@pytest.mark.parametrize("where", FILES)
@pytest.mark.parametrize("has_sessions", [True, False])
async def test_extensions_are_read_wherever_they_are(
    converters: Converters, tmp_path: Path, where: str, *, has_sessions: bool
) -> None:
    """Drivers look for them only where some are early, and newer ones not only at points of tracks and routes."""
    pipeline = Pipeline(converters, has_sessions=has_sessions)
    layer, around, element = FILES[where]
    points = "".join(
        f'<{element} lat="1" lon="{x}"><extensions><o:speed>{x}</o:speed></extensions></{element}>' for x in (2, 3)
    )
    path = tmp_path / "a.gpx"
    path.write_text(f"{START}{around.format(points)}</gpx>")
    done = await pipeline.to("GeoPackage", path)
    rows = readers.geopackage(done.path)[layer]
    assert [row["o_speed"] for row in rows][-2:] == [2, 3]
    assert len(rows) == points.count("<extensions>") + around.count("<wpt")
