"""Features too far from the area of a coordinate system are told, with their count and the first."""

from pathlib import Path

import msgspec
import pytest

from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from service.usecases.verify_output import verify_output
from tests.integration.formats.pipeline import Pipeline, feature, geometry, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

SWISS, PACIFIC, POLE = (7.5, 47), (-150, 10), (3, 89)
LINE_TO_PACIFIC = geometry("LineString", [SWISS, PACIFIC])
FEATURES = {
    "a point": [point(*SWISS, name=1), feature(None, name=2), point(*PACIFIC, name=3), point(*PACIFIC, name=4)],
    "a line": [feature(geometry("LineString", [SWISS, (8, 46)]), a=1), feature(LINE_TO_PACIFIC, a=2)],
    "a pole": [point(3, -89, a=1), point(*POLE, a=2)],
    "beyond a zone": [point(15, 47, a=1), point(45, 60, a=2), point(*SWISS, a=3)],
    "far from a meridian": [
        point(11, 1, a=1),
        point(21, 0, a=2),
        feature(geometry("LineString", [(9, 0), (30, 0)]), a=3),
        point(-20, 5, a=4),
    ],
    "in zone 44": [point(132, 46, a=1), point(134, 47, a=2), point(-150, 10, a=3)],
    "in the Arctic": [point(-50, 71, a=1), point(-43, 72, a=2)],
    "by 17 m": [point(*SWISS, a=1), point(-91, 0, a=2), point(99, -20, a=3)],
    "from a projection": [point(*SWISS, a=1), point(*PACIFIC, a=2)],
    "a name to cut": [point(*SWISS, a_name_of_eleven=1), point(*PACIFIC, a_name_of_eleven=2), feature(LINE_TO_PACIFIC)],
}
CASES = {
    ("a point", 2056, "GeoPackage"): "2 of 3 features of 'a', first feature 3,",
    ("a point", 2056, "Csv"): "2 of 3 features of 'a', first feature 3,",
    ("a point", 2056, "Xlsx"): "2 of 3 features of 'a', first feature 3,",
    ("a line", 2056, "Shapefile"): "1 of 2 features of 'a', first feature 2,",
    ("a pole", 3031, "FlatGeobuf"): "1 of 2 features of 'a', first feature 2,",
    ("beyond a zone", 25832, "GeoPackage"): "",
    ("far from a meridian", 32632, "GeoPackage"): "2 of 4 features of 'a', first feature 3,",
    ("far from a meridian", 31467, "Csv"): "2 of 4 features of 'a', first feature 3,",
    ("far from a meridian", 2065, "Csv"): "",
    ("in zone 44", 4532, "GeoPackage"): "1 of 3 features of 'a', first feature 3,",
    ("in the Arctic", 6061, "GeoPackage"): "",
    ("by 17 m", 32632, "GeoPackage"): "2 of 3 features of 'a', first feature 2,",
    ("a point", 3857, "GeoPackage"): "",
    ("a name to cut", 2056, "Shapefile"): "2 of 3 features of 'a', first feature 2,",
}


async def warned(pipeline: Pipeline, path: Path, output: str, **wishes: object) -> list[str]:
    """The warnings about features that stray, as a job makes them."""
    request = msgspec.convert({"output": output, **wishes}, ConversionRequest)
    directory, source = pipeline.receive(path)
    target = choose_target(source.format, output)
    async with pipeline.engine.session(pipeline.run, target) as run:
        found = await inspect_source(pipeline.engine, run, source, target, directory, request=request)
        plan = plan_conversion(found.source, target, found.facts, request, pipeline.engine.catalogue)
        astray = await pipeline.engine.convert(run, found.source, plan, directory)
        differences = await verify_output(pipeline.engine, run, found.source, plan, directory, astray=astray)
    return [warning for warning in differences if "too far" in warning]


@pytest.mark.parametrize("case", CASES, ids=map(str, CASES))
async def test_what_strays_is_told(either: Pipeline, tmp_path: Path, case: tuple[str, int, str]) -> None:
    """With and without a run that is held open."""
    features, epsg, output = case
    path = write_geojson(tmp_path / "a.geojson", FEATURES[features])
    told = await warned(either, path, output, target_epsg=epsg)
    assert [warning[: len(CASES[case])] for warning in told] == [CASES[case]] * bool(CASES[case]), told


async def test_what_strays_is_told_of_every_source(either: Pipeline, tmp_path: Path) -> None:
    """Coordinates of a projection are examined as well, whether the file records their system or not."""
    path = write_geojson(tmp_path / "a.geojson", FEATURES["from a projection"])
    mercator = (await either.to("Shapefile", path, target_epsg=3857)).path
    told = await warned(either, mercator, "GeoPackage", target_epsg=2056)
    assert [warning.partition(", ")[0] for warning in told] == ["1 of 2 features of 'a'"]
    assert "EPSG:2056" in told[0]
    assert await warned(either, mercator, "GeoJson") == []
    table = tmp_path / "a.csv"
    table.write_text("id,x,y\n1,835000,5942000\n2,-60000000,1118890\n")
    told = await warned(either, table, "GeoJson", source_epsg=3857)
    assert [warning.partition(" features")[0] for warning in told] == ["1 of 2"]
    assert "EPSG:3857" in told[0]


async def test_what_is_far_from_a_meridian_is_told_with_a_remedy(either: Pipeline, tmp_path: Path) -> None:
    """Transverse Mercator leads back from everywhere, but its lengths mean nothing far away."""
    path = write_geojson(tmp_path / "a.geojson", FEATURES["far from a meridian"])
    (told,) = await warned(either, path, "GeoPackage", target_epsg=32632)
    assert "EPSG:32632" in told
    assert "2,000 km and more from the central meridian" in told
    assert "choose another targetEpsg, such as that of the zone in which they lie" in told


@pytest.mark.parametrize(
    ("epsg", "least", "most"),
    [
        (32632, -1_500_000, 2_500_000),
        (31467, 1_500_000, 5_500_000),
        (2053, -2_000_000, 2_000_000),
        (5555, -1_500_000, 2_500_000),
        (2263, float("-inf"), float("inf")),
        (3857, float("-inf"), float("inf")),
        (999999, float("-inf"), float("inf")),
    ],
)
def test_transverse_mercator_ends_far_from_its_meridian(
    converters: Converters, epsg: int, least: float, most: float
) -> None:
    """In the unit of the system, whatever its false easting, also below a compound system."""
    assert converters.engine.catalogue.reach(epsg) == (least, most)


def test_the_reach_is_in_the_unit_of_the_system(converters: Converters) -> None:
    """New York East is in US feet, with a false easting in them."""
    least, most = converters.engine.catalogue.reach(2260)
    assert (most - least) / 2 == pytest.approx(2e6 * 3937 / 1200)
    assert (most + least) / 2 == pytest.approx(150_000 * 3937 / 1200)


@pytest.mark.parametrize(
    ("epsg", "shared"), [(32632, True), (4326, True), (25832, False), (4979, False), (999999, False)]
)
def test_only_systems_of_one_datum_are_compared_to_the_meter(
    converters: Converters, epsg: int, *, shared: bool
) -> None:
    """Changes of the datum are not exact, there and back."""
    assert converters.engine.catalogue.share_datum(4326, epsg) is shared


async def test_tens_of_thousands_of_features_may_be_looked_at(either: Pipeline, tmp_path: Path) -> None:
    """Without a run that is held open, a few thousand took longer than a conversion may."""
    rows = [SWISS] * 30_000 + [PACIFIC]
    (tmp_path / "a.csv").write_text("n,x,y\n" + "".join(f"1,{x},{y}\n" for x, y in rows))
    (told,) = await warned(either, tmp_path / "a.csv", "GeoPackage", source_epsg=4326, target_epsg=2056)
    assert told.startswith("1 of 30,001 features of 'a', first feature 30,001,")
