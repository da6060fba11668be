"""Datums between which PROJ knows no transformation are told, because it takes them for the same; so are heights."""

import json
import struct
from codecs import BOM_UTF8
from itertools import combinations
from math import inf
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from service.errors import Rejection
from service.formats.crs import CrsCatalogue, catalogue_of
from service.formats.crs_database import RELATED_HEIGHTS, are_related, related
from service.formats.grids import LackingGrid, lacking_grid, operations_between
from service.formats.plan import plan_conversion
from service.formats.request import ConversionRequest
from service.formats.target import choose_target
from service.usecases.inspect_source import inspect_source
from tests.integration.formats import readers
from tests.integration.formats.editing import edited, replace_in
from tests.integration.formats.pipeline import Pipeline, write_geojson
from tests.integration.formats.samples import point
from tests.support.converters import Converters

UNRELATED = "No transformation between the datums of EPSG:{} and EPSG:{} is known"
TWD67, TWD97 = 3828, 3826
"""Two systems of Taiwan with the same projection, whose datums are 830 m apart."""
HS2, HS2_GRID = 9299, 9300
"""A frame of a British railway, on a modern ellipsoid, which only a grid relates to others; and its projection."""


@pytest.mark.parametrize(
    ("one", "other", "related"),
    [
        (TWD67, 4326, False),
        (4326, TWD67, False),
        (TWD67, 3821, True),
        (TWD97, 4326, True),
        (4267, 4326, True),
        (31467, 25832, True),
        (4555, 4326, False),
        (6318, 4326, True),
        (3857, 4326, True),
        (999_999, 4326, True),
        (HS2, 4326, False),
        (4258, HS2, False),
        (HS2, HS2_GRID, True),
    ],
)
def test_it_is_known_which_datums_are_related(converters: Converters, one: int, other: int, *, related: bool) -> None:
    """Modern ones, whose places nearly are the same, count as related, and so do systems that are not known."""
    assert converters.engine.catalogue.relates(one, other) is related


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [(TWD67, 4326, True), (TWD67, 3821, False), (TWD97, 4326, False), (TWD97, TWD67, True)],
)
async def test_datums_that_are_taken_for_the_same_are_told(
    pipeline: Pipeline, tmp_path: Path, source: int, target: int, *, told: bool
) -> None:
    """With both systems and what can be done."""
    path = tmp_path / "in.csv"
    path.write_text("x,y,name\n250000,2650000,a\n")
    done = await pipeline.to("GeoPackage", path, source_epsg=source, target_epsg=target)
    warnings = [text for text in done.output.warnings if text.startswith(UNRELATED.format(source, target))]
    assert len(warnings) == told


KALIANPUR, BEIJING = 24378, 4214


@pytest.mark.parametrize(
    ("place", "target", "words"),
    [
        ((75, 20), KALIANPUR, "are accurate to 22 m, so"),
        ((9, 45), 4230, "are accurate to 2 m, so"),
        ((110, 30), BEIJING, "is known for most of these places, so"),
        ((108, 37), BEIJING, ""),
        ((8, 47), 2056, ""),
        ((9, 50), 25832, ""),
        ((-100, 40), 4269, ""),
    ],
)
async def test_it_is_told_how_accurate_a_transformation_is(
    pipeline: Pipeline, tmp_path: Path, place: tuple[float, float], target: int, words: str
) -> None:
    """Unless it is so to a meter; where there is none, although there is one elsewhere, nothing was told, either."""
    done = await pipeline.to("GeoPackage", write_geojson(tmp_path / "a.geojson", [point(*place)]), target_epsg=target)
    told = [warning for warning in done.output.warnings if "ransformation" in warning]
    assert len(told) == bool(words)
    assert all(words in warning and f"EPSG:{target}" in warning for warning in told)


def test_transformations_differ_in_their_accuracy_from_place_to_place(converters: Converters) -> None:
    """So both ends are told of an area; what only a missing grid allows does not count."""
    accuracy = converters.engine.catalogue.accuracy(23032, 4326, (-5.0, 36.0, 12.0, 60.0))
    assert accuracy is not None
    assert 0 < accuracy.best < accuracy.worst <= 10
    assert accuracy.is_known
    assert converters.engine.catalogue.accuracy(4269, 4326, None) is None
    assert converters.engine.catalogue.accuracy(TWD67, 4326, None) is None


def test_what_one_has_looked_up_of_a_system_all_know(converters: Converters, tmp_path: Path) -> None:
    """Reading GML looked up the same systems again in each file, which took longer than all else in the gateway."""
    database = tmp_path / "proj.db"
    database.symlink_to(converters.engine.capabilities.proj_database)
    known = [catalogue_of(database).is_plane(OSGB)]
    database.unlink()
    assert [*known, catalogue_of(database).is_plane(OSGB)] == [True, True]


OSGB, OSTN15 = 27700, "uk_os_OSTN15_NTv2_OSGBtoETRS.tif"
"""The national grid of Great Britain, and the file of its accurate transformation, which Debian does not have."""


def test_it_is_known_which_grid_is_missing(converters: Converters, tmp_path: Path) -> None:
    """By whichever of its names it is there; without it, places are less accurate."""
    database = tmp_path / "proj.db"
    database.symlink_to(converters.engine.capabilities.proj_database)
    uri = f"{database.resolve().as_uri()}?mode=ro"
    place = (-1.0, 52.0, -1.0, 52.0)
    assert lacking_grid(operations_between(uri, tmp_path, "EPSG:6277", "EPSG:6326"), place) == LackingGrid(
        OSTN15, 1.0, 2.0
    )
    for name in (OSTN15, "OSTN15_NTv2_OSGBtoETRS.gsb"):
        (tmp_path / name).touch()
        assert lacking_grid(operations_between(uri, tmp_path, "EPSG:6277", "EPSG:6326"), place) is None
        (tmp_path / name).unlink()
    halifax = (-63.6, 44.6, -63.6, 44.6)
    found = lacking_grid(operations_between(uri, tmp_path, "EPSG:6122", "EPSG:6326"), halifax)
    assert found == LackingGrid("NS778301.gsb", 1.5, inf)


def test_the_grid_of_a_frame_that_it_alone_defines_is_named(converters: Converters, tmp_path: Path) -> None:
    """As such frames were taken for modern ones, places on Snake projections were off without a word."""
    database = tmp_path / "proj.db"
    database.symlink_to(converters.engine.capabilities.proj_database)
    grid = CrsCatalogue(database).defining_grid(4326, HS2)
    assert grid.startswith("HS2TN15")
    (tmp_path / grid).touch()
    catalogue = CrsCatalogue(database)
    assert (catalogue.defining_grid(4326, HS2), catalogue.relates(HS2, 4326)) == ("", True)


@pytest.mark.parametrize(
    ("systems", "place", "told"),
    [
        ((HS2, 4326), "-1,52", "places may be off by hundreds of meters. If"),
        ((8237, 4269), "-75,45", "Places may be off by one or two meters."),
        ((4139, 4269), "-66,18", "Places may be off by several meters or more."),
    ],
)
async def test_how_far_places_may_be_off_is_told(
    pipeline: Pipeline, tmp_path: Path, systems: tuple[int, int], place: str, told: str
) -> None:
    """Realizations of one modern datum differ by little, even if EPSG does not say how far."""
    path = tmp_path / "in.csv"
    path.write_text(f"lon,lat,name\n{place},a\n")
    source, target = systems
    done = await pipeline.to("GeoPackage", path, source_epsg=source, target_epsg=target)
    assert any(told in warning for warning in done.output.warnings), done.output.warnings


DEPRECATED, SUCCESSOR = 26826, 26856
"""Maine West in feet, with a false easting by which EPSG corrected the first one: they are 630 km apart."""
IN_MAINE = (913367.2698, 129625.857)
"""In the former; at -70, 44."""


def with_deprecated_code(path: Path, kind: str) -> None:
    """Let a file in SUCCESSOR record DEPRECATED instead."""
    if kind == "GeoParquet":
        table = pq.read_table(path)
        described = json.loads(table.schema.metadata[b"geo"])
        described["columns"][described["primary_column"]]["crs"]["id"]["code"] = DEPRECATED
        pq.write_table(table.replace_schema_metadata({"geo": json.dumps(described)}), path)
        return
    if kind == "FlatGeobuf":
        code = struct.Struct("<i")
        path.write_bytes(path.read_bytes().replace(code.pack(SUCCESSOR), code.pack(DEPRECATED)))
        return
    with edited(path) as connection:
        connection.execute(CODES[kind], (DEPRECATED, DEFINITION, SUCCESSOR))


CODES = {
    "GeoPackage": "UPDATE gpkg_spatial_ref_sys SET organization_coordsys_id = ?, definition = ? "
    "WHERE organization_coordsys_id = ?",
    "SpatiaLite": "UPDATE spatial_ref_sys SET auth_srid = ?, proj4text = '', srtext = ? WHERE auth_srid = ?",
}
"""Changes the codes that databases keep, and what they say of them besides."""
DEFINITION = (
    'PROJCS["NAD83(HARN) / Maine West (ftUS) (deprecated)",GEOGCS["NAD83(HARN)",'
    'DATUM["NAD83_High_Accuracy_Reference_Network",SPHEROID["GRS 1980",6378137,298.257222101]],PRIMEM["Greenwich",0],'
    'UNIT["degree",0.0174532925199433],AUTHORITY["EPSG","4152"]],PROJECTION["Transverse_Mercator"],'
    'PARAMETER["latitude_of_origin",42.8333333333333],PARAMETER["central_meridian",-70.1666666666667],'
    'PARAMETER["scale_factor",0.999966667],PARAMETER["false_easting",900000],PARAMETER["false_northing",0],'
    f'UNIT["metre",1],AXIS["Easting",EAST],AXIS["Northing",NORTH],AUTHORITY["EPSG","{DEPRECATED}"]]'
)


@pytest.mark.parametrize("kind", ["GeoJson", "GeoParquet", "FlatGeobuf", *CODES])
async def test_a_deprecated_code_of_a_file_stands_for_itself(either: Pipeline, tmp_path: Path, kind: str) -> None:
    """GDAL takes its successor for some formats alone, and again for a work file."""
    if kind == "GeoJson":
        named = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{DEPRECATED}"}}
        path = write_geojson(tmp_path / "a.geojson", [point(*IN_MAINE, a=1, b=2)], crs=named)
    else:
        table = tmp_path / "a.csv"
        table.write_text("x,y,a,b\n{},{},1,2\n".format(*IN_MAINE))
        path = (await either.to(kind, table, source_epsg=SUCCESSOR, target_epsg=SUCCESSOR)).path
        with_deprecated_code(path, kind)
    done = await either.to("Csv", path)
    (row,) = readers.table(done.path)
    assert (float(row["X"]), float(row["Y"])) == pytest.approx((-70, 44))
    assert any(f"EPSG:{DEPRECATED}, which is deprecated" in told for told in done.output.warnings)


CONUS = "us_noaa_conus.tif"
"""A grid of the United States for NAD27, which Debian does not have either."""


@pytest.mark.parametrize(("target", "grid"), [(2229, ""), (26745, CONUS), (4267, CONUS), (4269, "")])
async def test_the_grid_is_one_of_where_places_are(pipeline: Pipeline, tmp_path: Path, target: int, grid: str) -> None:
    """GeoJSON in Los Angeles was told to lack a grid of Alberta, because its scan does not look where it is."""
    path = write_geojson(tmp_path / "a.geojson", [point(-118.2, 34.1), point(-118.3, 34.2)])
    request = ConversionRequest(output="Csv", target_epsg=target)
    directory, source = pipeline.receive(path)
    into = choose_target(source.format, request.output)
    async with pipeline.engine.session(pipeline.run, into) as run:
        found = await inspect_source(pipeline.engine, run, source, into, directory, request=request)
    plan = plan_conversion(found.source, into, found.facts, request, pipeline.engine.catalogue)
    told = [warning for warning in plan.warnings if "with the grid" in warning]
    assert len(told) == bool(grid)
    assert all(grid in warning for warning in told)


MAY76, MAY76_GRID = 4608, "ca_nrc_MAY76V20.tif"
"""A system of Ontario that is transformed by a grid alone, and the file of it."""


def test_datums_are_related_by_a_grid_that_is_there(converters: Converters, tmp_path: Path) -> None:
    """And are taken for the same without it."""
    database = tmp_path / "proj.db"
    database.symlink_to(converters.engine.capabilities.proj_database)
    assert not CrsCatalogue(database).relates(MAY76, 4326)
    (tmp_path / MAY76_GRID).touch()
    assert CrsCatalogue(database).relates(MAY76, 4326)


async def test_datums_that_a_missing_grid_relates_are_told_once(
    pipeline: Pipeline, converters: Converters, tmp_path: Path
) -> None:
    """As off by hundreds of meters, with the grid that is missing."""
    path = tmp_path / "in.csv"
    path.write_text("longitude,latitude,name\n-80,45,a\n")
    done = await pipeline.to("GeoPackage", path, source_epsg=MAY76)
    warnings = [text for text in done.output.warnings if "may be off" in text]
    is_there = (converters.engine.capabilities.proj_database.parent / MAY76_GRID).exists()
    assert len(warnings) == (not is_there)
    assert all(text.startswith(UNRELATED.format(MAY76, 4326)) and MAY76_GRID in text for text in warnings)


@pytest.mark.parametrize(("source", "target", "told"), [(OSGB, 4326, True), (OSGB, 4277, False), (25832, 4326, False)])
async def test_accuracy_that_is_lost_for_lack_of_a_grid_is_told(
    pipeline: Pipeline, converters: Converters, tmp_path: Path, source: int, target: int, *, told: bool
) -> None:
    """PROJ takes the next best way in silence."""
    path = tmp_path / "in.csv"
    path.write_text("x,y,name\n400000,300000,a\n")
    done = await pipeline.to("GeoPackage", path, source_epsg=source, target_epsg=target)
    is_there = (converters.engine.capabilities.proj_database.parent / OSTN15).exists()
    warnings = [text for text in done.output.warnings if OSTN15 in text]
    assert len(warnings) == (told and not is_there)
    assert all("off by 2 m" in text and "accurate to 1 m" in text for text in warnings)


DHHN92, NAVD88_IN_FEET, EGM2008 = 5555, 8700, 9518
"""Compound systems with such heights."""
IN_SPACE = 4979


@pytest.mark.parametrize(
    ("systems", "height", "sentence"),
    [
        ((DHHN92, 4326), 100, "kept unchanged: they are 'DHHN92 height' in EPSG:5555, and EPSG:4326, the"),
        ((NAVD88_IN_FEET, IN_SPACE), 30.48, "No transformation from 'NAVD88 height (ft)' (EPSG:8700) to 'ellipsoidal"),
        (
            (IN_SPACE, EGM2008),
            100,
            "No transformation from 'ellipsoidal height' (EPSG:4979) to 'EGM2008 height' (EPSG:",
        ),
        ((4326, EGM2008), 100, "EPSG:4326 does not define them, and EPSG:9518, the system of the result,"),
        ((DHHN92, 5556), 100, ""),
        ((IN_SPACE, 4326), 100, ""),
        ((25832, 4326), 100, ""),
    ],
)
async def test_elevations_that_are_not_transformed_are_told(
    pipeline: Pipeline, tmp_path: Path, systems: tuple[int, int], height: float, sentence: str
) -> None:
    """Unless what they are stays the same, or no system says it; drivers change their unit."""
    path = tmp_path / "in.csv"
    path.write_text("x,y,z\n7.5,47.5,100\n")
    source, target = systems
    done = await pipeline.to("GeoPackage", path, source_epsg=source, target_epsg=target)
    told = [text for text in done.output.warnings if "levations" in text]
    assert len(told) == bool(sentence)
    assert sentence in "".join(told)
    written = (await pipeline.to("Wkt", done.path, target_epsg=target)).path.read_text()
    assert float(written.strip(")\n").split()[-1]) == pytest.approx(height)


def test_heights_are_related_if_a_grid_is_there(tmp_path: Path) -> None:
    """By whichever of its names; some need none."""
    database = tmp_path / "proj.db"
    with edited(database) as connection:
        connection.executescript(
            """
            CREATE TABLE vertical_crs (auth_name, code INTEGER, name, datum_auth_name, datum_code);
            INSERT INTO vertical_crs VALUES ('EPSG', 11, 'a', 'EPSG', 21), ('EPSG', 12, 'b', 'EPSG', 22);
            INSERT INTO vertical_crs VALUES ('EPSG', 13, 'c', 'EPSG', 23);
            CREATE TABLE geodetic_crs (auth_name, code INTEGER, type);
            INSERT INTO geodetic_crs VALUES ('EPSG', 4, 'geographic 3D');
            CREATE TABLE helmert_transformation_table (
                source_crs_auth_name, source_crs_code, target_crs_auth_name, target_crs_code, deprecated
            );
            CREATE TABLE other_transformation (
                source_crs_auth_name, source_crs_code, target_crs_auth_name, target_crs_code, deprecated
            );
            INSERT INTO other_transformation VALUES ('EPSG', 11, 'EPSG', 12, 0);
            CREATE TABLE grid_transformation (
                source_crs_auth_name, source_crs_code, target_crs_auth_name, target_crs_code, deprecated, grid_name
            );
            INSERT INTO grid_transformation VALUES ('EPSG', 4, 'EPSG', 12, 0, 'B'), ('EPSG', 4, 'EPSG', 13, 0, 'C');
            CREATE TABLE grid_alternatives (original_grid_name, proj_grid_name, old_proj_grid_name);
            INSERT INTO grid_alternatives VALUES ('B', 'b.tif', 'b.gtx'), ('C', 'c.tif', NULL);
            """
        )
    (tmp_path / "b.gtx").touch()
    found = related(f"file:{database}", tmp_path, RELATED_HEIGHTS)
    pairs = combinations(("EPSG:21", "EPSG:22", "EPSG:23", "ellipsoid"), 2)
    unrelated = {("EPSG:21", "EPSG:23"), ("EPSG:22", "EPSG:23"), ("EPSG:23", "ellipsoid")}
    assert {pair for pair in pairs if not are_related(found, *pair)} == unrelated


ON_BESSEL = (
    'GEOGCS["x",DATUM["{}",SPHEROID["Bessel_1841",6377397.155,299.1528128]{}],PRIMEM["Greenwich",0],'
    'UNIT["Degree",0.0174532925199433]]'
)
DESCRIBED = {
    ON_BESSEL.format("D_Unknown_based_on_Bessel", ""): "D_Unknown_based_on_Bessel",
    ON_BESSEL.format("Switzerland_CH_1903", ""): "Switzerland_CH_1903",
    ON_BESSEL.format("D_CH1903", ""): "",
    ON_BESSEL.format("CH1903_Bern", ""): "CH1903_Bern",
    ON_BESSEL.format("CH1903_Bern", "").replace('"Greenwich",0', '"Bern",7.439583333'): "",
    ON_BESSEL.format("Deutsches_Hauptdreiecksnetz", ""): "",
    ON_BESSEL.format("D_Unknown", ",TOWGS84[598.1,73.7,418.2,0.202,0.045,-2.455,6.7]"): "",
    ON_BESSEL.format("D_Unknown", "").replace("6377397.155,299.1528128", "6378137,298.257222101"): "",
    ON_BESSEL.format("D_Cape", "").replace("6377397.155,299.1528128", "6378249.145,293.4663077"): "",
    ON_BESSEL.format("D_Carthage", "").replace("6377397.155,299.1528128", "6378249.2,293.46602"): "",
}
"""Systems of a .prj without a code, and the datum that is not known."""
NO_DATUM = "The datum {!r} of the file is unknown, so it was treated as that of EPSG:4326: places may be off"


@pytest.mark.parametrize("prj", DESCRIBED)
async def test_a_datum_of_which_only_the_name_is_known_is_told(either: Pipeline, tmp_path: Path, prj: str) -> None:
    """PROJ takes it for any other without a word."""
    made = await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(7, 47)]))
    path = tmp_path / "a.zip"
    replace_in(made.path, path, rb"GEOGCS.*", prj.encode())
    warnings = (await either.to("GeoJson", path)).output.warnings
    unknown = DESCRIBED[prj]
    assert sum(warning.startswith(NO_DATUM.format(unknown)) for warning in warnings) == bool(unknown)
    assert unknown or not any("The datum" in warning for warning in warnings)
    again = (await either.to("GeoJson", path, source_epsg=4149)).output.warnings
    assert not any("The datum" in warning for warning in again)


THREE_AXES = (
    'GEOGCS["WGS_1984_3D",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0],'
    'UNIT["Degree",0.0174532925199433],LINUNIT["Meter",1.0]]'
)
"""What the driver of Shapefile writes for EPSG:4979."""


@pytest.mark.parametrize("target", ["GeoJson", "GeoPackage", "Kml", "GeoParquet", "SpatiaLite"])
async def test_systems_of_three_axes_without_a_code_are_known(either: Pipeline, tmp_path: Path, target: str) -> None:
    """As programs write them for GeoJSON with heights: the work file lacks a definition that old readers know."""
    made = await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(7, 47, 100)]))
    path = tmp_path / "a.zip"
    replace_in(made.path, path, rb"GEOGCS.*", THREE_AXES.encode())
    done = await either.to(target, path)
    assert [told for told in done.output.warnings if not told.startswith("Styles")] == []
    again = done if target == "GeoJson" else await either.to("GeoJson", done.path)
    [made_again] = json.loads(again.path.read_bytes())["features"]
    assert made_again["geometry"]["coordinates"] == [7, 47, 100]


@pytest.mark.parametrize(
    ("code", "datum"),
    [
        (21781, "Switzerland_CH_1903"),
        (5514, "System_of_the_Unified"),
        (22391, "Carthage"),
    ],
)
async def test_a_datum_of_mapinfo_that_is_not_known_is_told(
    either: Pipeline, tmp_path: Path, code: int, datum: str
) -> None:
    """MapInfo knows the Swiss one, but GDAL calls it otherwise than PROJ, and the Czech one beside another meridian.

    That of Tunisia has an ellipsoid whose axis is 5 cm shorter there, by which PROJ does not know it.
    """
    source = write_geojson(tmp_path / "a.geojson", [point(15, 50)])
    wanted = ConversionRequest(output="MapInfo", target_epsg=code)
    made = await either.convert(source, wanted, verifies=True)
    assert any(told.startswith("MapInfo TAB ") and f"EPSG:{code}" in told for told in made.differences)
    assert (
        await either.convert(source, ConversionRequest(output="MapInfo", target_epsg=27700), verifies=True)
    ).differences == ()
    warnings = (await either.to("GeoJson", made.path)).output.warnings
    [told] = [warning for warning in warnings if "is unknown, so it was treated as that of EPSG:4326" in warning]
    assert datum in told.replace(" ", "_")


IN_FEET = (
    'COMPD_CS["x",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137,298.257223563]],'
    'PRIMEM["Greenwich",0],UNIT["Degree",0.0174532925199433]],VERT_CS["NAVD88 height (ftUS)",'
    'VERT_DATUM["North American Vertical Datum 1988",2005],UNIT["US survey foot",0.304800609601219]]]'
)
"""A system of positions and heights that has no code."""


@pytest.mark.parametrize(("target", "told"), [(4326, "does not define them"), (4979, "'ellipsoidal height'")])
async def test_heights_that_a_file_only_describes_are_told(
    either: Pipeline, tmp_path: Path, target: int, told: str
) -> None:
    """They stayed feet without a word, whatever the result says."""
    high = (await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(-80, 40, 100, a=1)]))).path
    path = tmp_path / "feet.zip"
    replace_in(high, path, rb"(?s)\AGEOGCS\[.*", IN_FEET.encode())
    done = await either.to("GeoPackage", path, target_epsg=target)
    (warning,) = done.output.warnings
    assert "'NAVD88 height (ftUS)', as the file describes them" in warning
    assert told in warning
    flat = (await either.to("Shapefile", write_geojson(tmp_path / "b.geojson", [point(-80, 40, a=1)]))).path
    replace_in(flat, path, rb"(?s)\AGEOGCS\[.*", IN_FEET.encode())
    assert (await either.to("GeoPackage", path, target_epsg=target)).output.warnings == ()


WITHOUT_MAPS = {
    'LOCAL_CS["Site grid",UNIT["metre",1]]': "'local Site grid'",
    'GEOCCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["metre",1],'
    'AXIS["Geocentric X",OTHER],AXIS["Geocentric Y",OTHER],AXIS["Geocentric Z",NORTH]]': "'geocentric WGS 84'",
    'GEODCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.257223563]],CS[Cartesian,3],'
    'AXIS["(X)",geocentricX],AXIS["(Y)",geocentricY],AXIS["(Z)",geocentricZ],LENGTHUNIT["metre",1]]': (
        "'geocentric WGS 84'"
    ),
}
"""What a .prj may say, and what it is called."""


@pytest.mark.parametrize("system", WITHOUT_MAPS)
async def test_a_prj_of_no_map_is_named(either: Pipeline, tmp_path: Path, system: str) -> None:
    """The file was said to record no system."""
    made = (await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, a=1)]))).path
    path = tmp_path / "b.zip"
    replace_in(made, path, rb"(?s)\AGEOGCS\[.*", system.encode())
    with pytest.raises(Rejection, match=f"in {WITHOUT_MAPS[system]}, which is not a known system"):
        await either.to("GeoPackage", path)


OF_2019 = (
    'GEOGCRS["{}",DATUM["European Terrestrial Reference System 1989",ELLIPSOID["GRS 1980",6378137,'
    '298.257222101,LENGTHUNIT["metre",1]]],PRIMEM["Greenwich",0,ANGLEUNIT["degree",0.0174532925199433]],'
    'CS[ellipsoidal,2],AXIS["latitude",north,ORDER[1],ANGLEUNIT["degree",0.0174532925199433]],AXIS["longitude",east,'
    'ORDER[2],ANGLEUNIT["degree",0.0174532925199433{}]]{}]'
)


@pytest.mark.parametrize("target", ["GeoJson", "GeoPackage"])
@pytest.mark.parametrize(("name", "code"), [("CH1903+ / LV95", ',ID["EPSG",4258]'), ("ETRS89", "")])
async def test_a_prj_in_the_form_of_2019_may_have_a_code(
    either: Pipeline, tmp_path: Path, target: str, name: str, code: str
) -> None:
    """Its driver reads nothing of it, and the file was said to record no system."""
    made = (await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, a=1)]))).path
    path = tmp_path / "b.zip"
    replace_in(made, path, rb"(?s)\AGEOGCS\[.*", OF_2019.format(name, "", code).encode())
    done = await either.to(target, path)
    assert done.facts.layers[0].crs.epsg == 4258
    assert done.output.warnings == ()


@pytest.mark.parametrize(("name", "told"), [("My grid", "'My grid'"), ("CH1903+ (own)", "a system of its own")])
async def test_a_prj_in_the_form_of_2019_with_a_code_that_is_not_known_is_named(
    either: Pipeline, tmp_path: Path, name: str, told: str
) -> None:
    """What else it says is not read."""
    made = (await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, a=1)]))).path
    path = tmp_path / "b.zip"
    replace_in(made, path, rb"(?s)\AGEOGCS\[.*", OF_2019.format(name, "", ',ID["EPSG",999999]').encode())
    with pytest.raises(Rejection, match=f"in {told}, which is not a known system"):
        await either.to("GeoPackage", path)


METER, FEET = 'LENGTHUNIT["metre",1]', 'LENGTHUNIT["US survey foot",0.304800609601219]'
DEGREE = 'ANGLEUNIT["degree",0.0174532925199433]'
NEW_JERSEY = (
    'PROJCRS["{}",BASEGEOGCRS["NAD83",DATUM["North American Datum 1983",ELLIPSOID["GRS 1980",6378137,298.257222101,'
    f'{METER}]],PRIMEM["Greenwich",0,{DEGREE}],ID["EPSG",4269]],CONVERSION["of New Jersey",'
    f'METHOD["Transverse Mercator",ID["EPSG",9807]],PARAMETER["Latitude of natural origin",38.8333333333333,{DEGREE}],'
    f'PARAMETER["Longitude of natural origin",-74.5,{DEGREE}],'
    'PARAMETER["Scale factor at natural origin",0.9999,SCALEUNIT["unity",1]],PARAMETER["False easting",492125{}],'
    f'PARAMETER["False northing",0,{FEET}]],CS[Cartesian,2],AXIS["easting (X)",east,ORDER[1],{FEET}],'
    f'AXIS["northing (Y)",north,ORDER[2],{FEET}]]'
)


@pytest.mark.parametrize(("name", "epsg"), [("NAD83 / New Jersey (ftUS)", 3424), ("Née là-bas", None)])
async def test_a_prj_in_the_form_of_2019_needs_no_code(
    either: Pipeline, tmp_path: Path, name: str, epsg: int | None
) -> None:
    """It was refused, whatever it describes; the code of a part is none of the system."""
    given = write_geojson(tmp_path / "a.geojson", [point(-74.5, 40.25, a=1)])
    made = (await either.to("Shapefile", given, target_epsg=3424)).path
    path = tmp_path / "b.zip"
    replace_in(made, path, rb"(?s)\APROJCS\[.*", BOM_UTF8 + NEW_JERSEY.format(name, f",{FEET}").encode())
    done = await either.to("GeoJson", path)
    ((x, y),) = (each["geometry"]["coordinates"] for each in json.loads(done.path.read_bytes())["features"])
    assert (x, y) == pytest.approx((-74.5, 40.25), abs=1e-6)
    assert done.output.warnings == ()
    assert (await either.to("GeoPackage", path)).facts.layers[0].crs.epsg == epsg


async def test_a_prj_in_the_form_of_2019_says_the_units_of_its_parameters(either: Pipeline, tmp_path: Path) -> None:
    """They may be those of the system, which would be taken for meters."""
    made = (await either.to("Shapefile", write_geojson(tmp_path / "a.geojson", [point(1, 2, a=1)]))).path
    path = tmp_path / "b.zip"
    replace_in(made, path, rb"(?s)\AGEOGCS\[.*", NEW_JERSEY.format("NAD83 (own)", "").encode())
    with pytest.raises(Rejection, match="in a system of its own, which is not a known system"):
        await either.to("GeoPackage", path)
