"""Layers without features: what a target does not keep of their columns and types is told."""

from pathlib import Path

import pytest

from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

KEEP_COLUMNS = ["Csv", "SpatiaLite", "OpenFileGdb", "Shapefile", "GeoParquet"]
KEEP_TYPES = KEEP_COLUMNS[1:]
LOSE_COLUMNS = ["GeoJson", "GeoJsonSeq", "Gml", "Kml", "Kmz", "Ods", "Xlsx"]


async def empty(converters: Converters, tmp_path: Path) -> Path:
    """A GeoPackage with a layer of points that has a column and no features."""
    full = write_geojson(tmp_path / "a.geojson", [point(1, 2, name="a")])
    directory = converters.new_directory()
    (directory / "a.geojson").write_bytes(full.read_bytes())
    selection = ("-where", "name = 'b'", "-nlt", "POINT")
    assert await converters.ogr2ogr(directory, "-f", "GPKG", "a.gpkg", "a.geojson", *selection)
    return directory / "a.gpkg"


@pytest.mark.parametrize("target", [*KEEP_COLUMNS, *LOSE_COLUMNS])
async def test_what_an_empty_layer_declares_is_kept_or_told(
    converters: Converters, either: Pipeline, tmp_path: Path, target: str
) -> None:
    """Columns and the type of geometries vanished without a word."""
    warnings = (await either.to(target, await empty(converters, tmp_path))).output.warnings
    assert sum("1 column of the layer 'a' was left out" in told for told in warnings) == (target in LOSE_COLUMNS)
    assert sum("declares Point" in told for told in warnings) == (target not in KEEP_TYPES)
