"""What the driver of TopoJSON leaves out, beside what it keeps."""

from pathlib import Path

import pytest

from tests.integration.formats.pipeline import Pipeline

TOPOLOGY = (
    '{{"type": "Topology", "objects": {{"a": {{"type": "GeometryCollection", "geometries": [{}, '
    '{{"type": "Point", "coordinates": [1, 2], "properties": {{"n": 2}}}}]}}}}, {}"arcs": {}}}'
)
LINE = '{"type": "LineString", "arcs": [0], "properties": {"n": 1}}'
AREAS = '{"type": "MultiPolygon", "arcs": [[[0, 1, 2], [3, 4, 5]]], "properties": {"n": 1}}'
COLLECTION = '{"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1, 2]}]}'
TRANSFORM = '"transform": {"scale": [1, 1], "translate": [0, 0]}, '
FLAT, IN_SPACE = "[[[0, 0], [1, 1]]]", "[[[0, 0, 5], [1, 1.5, 6]]]"
SIX = "[[[0, 0], [4, 0]], [[4, 0], [0, 4]], [[0, 4], [0, 0]], [[1, 1], [2, 1]], [[2, 1], [1, 2]], [[1, 2], [1, 1]]]"
ELEVATIONS = (
    "Lines and areas with elevations cannot be read; their features have no geometry. Send the file as GeoJSON, or "
    "without elevations, to keep them."
)
COLLECTIONS = "Features that are collections of geometries (1) were left out. Send the file as GeoJSON to keep them."


@pytest.mark.parametrize(
    ("content", "told", "features"),
    [
        ((LINE, "", IN_SPACE), (ELEVATIONS,), 2),
        ((LINE, TRANSFORM, "[\n[[0,0,5],[1,1,6]]\n]"), (ELEVATIONS,), 2),
        ((COLLECTION, "", FLAT), (COLLECTIONS,), 1),
        ((LINE, TRANSFORM, FLAT), (), 2),
        ((AREAS, "", SIX), (), 2),
    ],
)
async def test_what_the_driver_cannot_read_is_told(
    pipeline: Pipeline, tmp_path: Path, content: tuple[str, str, str], told: tuple[str, ...], features: int
) -> None:
    """Geometries whose arcs have elevations, and features that are collections; nothing is told of others."""
    path = tmp_path / "a.topojson"
    path.write_text(TOPOLOGY.format(*content), encoding="utf-8")
    done = await pipeline.to("GeoPackage", path, source_epsg=4326)
    assert (done.output.warnings, done.facts.layers[0].features) == (told, features)
