"""The schema of large GML, which is found in a shorter document with all kinds of its tags."""

from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from service.engine.reading.gml import SCHEMA
from service.engine.workspace import FOLDER
from tests.integration.formats.pipeline import Pipeline
from tests.support.converters import Converters

FEATURES, PLACES, LONGEST = 6000, 5000, "ö" * 60
FIRST_WIDTH = 32 + 16
"""Where a .dbf has the width of its first column."""
START = (
    '<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs" xmlns:gml="http://www.opengis.net/gml" xmlns:t="t">'
)
POINT = '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326"><gml:pos>50 9.{}</gml:pos></gml:Point>'
FLAT = '<gml:Point srsName="urn:ogc:def:crs:EPSG::4326"><gml:coordinates>50,9.{}</gml:coordinates></gml:Point>'


def _members(point: str) -> Iterator[str]:
    """Features of two kinds, one behind the other, of which one in the middle has a long text and one another value."""
    for number in range(FEATURES):
        kind = "place" if number < PLACES else "area"
        name = LONGEST if number == FEATURES // 2 else f"n{number}"
        rare = "<t:rare>x</t:rare>" if number == FEATURES // 3 else ""
        values = f"<t:geom>{point.format(number)}</t:geom><t:name>{name}</t:name><t:rank>{number}</t:rank>{rare}"
        feature = f'<t:{kind} gml:id="{kind}.{number % PLACES}">{values}</t:{kind}>'
        yield f"<gml:featureMember>{feature}</gml:featureMember>\n"


def _document(path: Path, point: str = POINT) -> Path:
    path.write_text("".join([START, *_members(point), "</wfs:FeatureCollection>"]), encoding="utf-8")
    return path


async def test_everything_is_read_by_a_schema_from_a_shorter_document(either: Pipeline, tmp_path: Path) -> None:
    """All layers, also columns of a single feature, and texts longer than any in the shorter document."""
    converted = await either.to("GeoPackage", _document(tmp_path / "in.gml"))
    place, area = converted.facts.layers
    assert {field.name: field.filled for field in place.fields} == {"name": PLACES, "rank": PLACES, "rare": 1}
    assert {field.name: field.filled for field in area.fields} == {"name": 1000, "rank": 1000}
    assert (place.features, area.features, place.geometry_types) == (PLACES, FEATURES - PLACES, {"Point": PLACES})
    assert max(field.longest_bytes for field in place.fields) == len(LONGEST.encode())
    assert place.crs.epsg == 4326


async def test_a_schema_is_put_beside_the_file(converters: Converters, tmp_path: Path) -> None:
    """Not where texts that are alike may be coordinates with and without elevations."""
    pipeline = Pipeline(converters, has_sessions=True)
    for point, has_schema in ((POINT, True), (FLAT, False)):
        converted = await pipeline.to("Shapefile", _document(tmp_path / "in.gml", point), layer="place")
        shorter = converted.source.parts[0].shorter
        assert shorter is not None
        assert (shorter.parents[1] / FOLDER / SCHEMA).exists() == has_schema
        with ZipFile(converted.path) as archive:
            (table,) = [archive.read(name) for name in archive.namelist() if name.endswith(".dbf")]
        assert table[FIRST_WIDTH] == len(LONGEST.encode())
