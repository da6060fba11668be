"""What is decided before anything is written."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.errors import MultipleLayers, Rejection
from service.formats.crs import CrsCatalogue
from service.formats.facts import Crs, Facts, Field, FieldType, Layer
from service.formats.losses import UNPLACED, told_of_reading
from service.formats.plan import MAX_DATASETS, ConversionPlan, can_go_direct, plan_conversion
from service.formats.registry import by_token, default_output, find_output
from service.formats.request import ConversionRequest
from service.formats.source import Part, Source
from service.formats.target import choose_target

WGS84 = Crs(known=True, epsg=4326)
SYSTEMS = [
    ("4326", "WGS 84", "geographic 2D", 0),
    ("3857", "Web Mercator", "projected", 0),
    ("3785", "Old Mercator", "projected", 1),
    ("4979", "WGS 84", "geographic 3D", 0),
    ("5516", "S-JTSK/05 / Modified Krovak East North", "projected", 0),
    ("5773", "EGM96 height", "vertical", 0),
]


@pytest.fixture
def catalogue(tmp_path: Path) -> CrsCatalogue:
    path = tmp_path / "proj.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE crs_view (table_name, auth_name, code, name, type, deprecated)")
        connection.executemany("INSERT INTO crs_view VALUES ('', 'EPSG', ?, ?, ?, ?)", SYSTEMS)
        connection.execute(
            "CREATE TABLE deprecation (table_name, deprecated_auth_name, deprecated_code, replacement_auth_name,"
            " replacement_code)"
        )
        connection.execute(
            "CREATE TABLE usage (object_table_name, object_auth_name, object_code, extent_auth_name, extent_code)"
        )
        connection.execute("CREATE TABLE extent (auth_name, code, west_lon, south_lat, east_lon, north_lat)")
        bases = ("projected_crs", "geodetic_crs", "geodetic_datum", "ellipsoid", "unit_of_measure")
        for table in (*bases, "compound_crs", "vertical_crs", "axis", "conversion_table"):
            connection.execute(
                f"CREATE TABLE {table} (auth_name, code, name, type, geodetic_crs_code, datum_auth_name, datum_code, "
                "horiz_crs_code, vertical_crs_auth_name, vertical_crs_code, conversion_auth_name, conversion_code, "
                "coordinate_system_auth_name, coordinate_system_code, coordinate_system_order, "
                "method_auth_name, method_code, param4_value, param4_uom_auth_name, param4_uom_code, "
                "ellipsoid_auth_name, ellipsoid_code, semi_major_axis, uom_auth_name, uom_code, conv_factor)"
            )
        connection.execute("INSERT INTO deprecation VALUES ('projected_crs', 'EPSG', '3785', 'EPSG', '3857')")
        connection.commit()
    return CrsCatalogue(path)


def source(token: str = "geojson") -> Source:  # noqa: S107 -- a format's short name
    return Source(format=by_token(token), parts=(Part({".x": Path("x")}, "data"),), stem="data")


def layer(name: str = "data", types: dict[str, int] | None = None, **facts: object) -> Layer:
    counts = {"Point": 2} if types is None else types
    filled = {"features": sum(counts.values()), "geometry_types": counts, "crs": WGS84, "table": name, **facts}
    return Layer(name=name, **filled)  # type: ignore[arg-type]  # each fact is a field of it


def planned(
    catalogue: CrsCatalogue, output: str, *layers: Layer, of: Source | None = None, **wishes: Any
) -> ConversionPlan:
    facts = Facts(layers=layers, in_work_file=True)
    return plan_conversion(of or source(), find_output(output), facts, ConversionRequest(**wishes), catalogue)


def test_output_names_match_in_any_case() -> None:
    """An unknown one gets the list of valid ones."""
    assert find_output("geopackage").token == "gpkg"  # noqa: S105 -- a format's short name
    with pytest.raises(Rejection, match="GeoJson, Shapefile, Csv"):
        find_output("pdf")


@pytest.mark.parametrize(("token", "target"), [("geojson", "shapefile"), ("shapefile", "geojson"), ("kml", "geojson")])
def test_default_directions(token: str, target: str) -> None:
    """Interface 1; a blank `outputFormat` counts as absent."""
    assert default_output(by_token(token)).token == target
    assert choose_target(by_token(token), " ").token == target


def test_the_output_must_differ_from_the_input() -> None:
    """Interface 1; SQLite and SpatiaLite are two formats."""
    with pytest.raises(Rejection, match="already"):
        choose_target(by_token("kml"), "KML")
    assert choose_target(by_token("sqlite"), "SpatiaLite").token == "spatialite"  # noqa: S105 -- a format's short name


def test_what_the_host_cannot_write_is_refused_with_the_reason() -> None:
    """Interface 1."""
    with pytest.raises(Rejection, match=r"GeoParquet cannot be written on this host: no driver\."):
        choose_target(by_token("kml"), "GeoParquet", {"geoparquet": "no driver."})


def test_an_unknown_source_system_is_refused_not_guessed(catalogue: CrsCatalogue) -> None:
    """Unless there is no geometry, or `sourceEpsg` names it."""
    unknown = layer(crs=Crs())
    with pytest.raises(Rejection, match="sourceEpsg"):
        planned(catalogue, "Kml", unknown)
    assert planned(catalogue, "Kml", unknown, source_epsg=4326).source_epsg == 4326
    assert planned(catalogue, "Csv", layer(types={}, features=2, crs=Crs(), fields=(Field("a"),))).output_epsg is None


@pytest.mark.parametrize(
    ("wish", "name"),
    [({"target_epsg": 999999}, "999999"), ({"source_epsg": 5773}, "5773"), ({"target_epsg": -1}, "-1")],
)
def test_unusable_codes_are_refused_with_the_code(catalogue: CrsCatalogue, wish: dict[str, Any], name: str) -> None:
    """Interface 9."""
    with pytest.raises(Rejection, match=f"EPSG:{name}"):
        planned(catalogue, "GeoPackage", layer(), **wish)


def test_a_deprecated_code_is_what_it_became(catalogue: CrsCatalogue) -> None:
    """As in the converter; a warning reports it unless the code is not used."""
    plan = planned(catalogue, "GeoPackage", layer(), target_epsg=3785)
    assert plan.output_epsg == 3857
    assert [warning.partition(",")[0] for warning in plan.warnings] == ["EPSG:3785 (targetEpsg) is deprecated"]
    read = planned(catalogue, "GeoPackage", layer(), source_epsg=3785)
    assert [warning.partition(",")[0] for warning in read.warnings] == ["EPSG:3785 (sourceEpsg) is deprecated"]
    assert not any("deprecated" in warning for warning in planned(catalogue, "Kml", layer(), target_epsg=3785).warnings)


@pytest.mark.parametrize(("version", "computes"), [("9.1.1", False), ("9.4.0", True), ("9.10.0", True), (None, False)])
def test_a_projection_that_proj_does_not_compute_is_refused(
    catalogue: CrsCatalogue, tmp_path: Path, version: str | None, *, computes: bool
) -> None:
    """Unless coordinates stay in it."""
    with closing(sqlite3.connect(tmp_path / "proj.db")) as connection:
        connection.execute("CREATE TABLE metadata (key, value)")
        connection.executemany("INSERT INTO metadata VALUES ('PROJ.VERSION', ?)", [(version,)] * bool(version))
        connection.commit()
    recorded = layer(crs=Crs(known=True, epsg=5516))
    assert planned(catalogue, "GeoPackage", recorded, target_epsg=5516).output_epsg == 5516
    cases: list[tuple[dict[str, Any], Layer]] = [
        ({"target_epsg": 5516}, layer()),
        ({}, recorded),
        ({"source_epsg": 5516}, layer()),
    ]
    for wish, of in cases:
        if computes:
            planned(catalogue, "GeoPackage", of, **wish)
            continue
        with pytest.raises(Rejection, match=r"EPSG:5516 has a projection.*5514"):
            planned(catalogue, "GeoPackage", of, **wish)


def test_a_deprecated_code_of_a_file_is_told_with_its_successor(catalogue: CrsCatalogue) -> None:
    """Unless the request names the system."""
    recorded = layer(crs=Crs(known=True, epsg=3785))
    (told,) = planned(catalogue, "GeoPackage", recorded).warnings
    assert told.startswith("The file is in EPSG:3785, which is deprecated.")
    assert told.endswith("send sourceEpsg=3857.")
    assert planned(catalogue, "GeoPackage", recorded, source_epsg=3857).warnings == ()


def test_formats_of_a_fixed_system_say_so(catalogue: CrsCatalogue) -> None:
    """Another `targetEpsg` is not an error, and `outputEpsg` is accurate."""
    plan = planned(catalogue, "Kml", layer(), target_epsg=3857)
    assert plan.output_epsg == 4326
    assert any("3857" in warning for warning in plan.warnings)


@pytest.mark.parametrize("extent", [(0.0, 0.0, 5e5, 5e6), (0.0, -91.0, 1.0, 1.0)])
def test_metres_under_the_name_of_degrees_are_refused(
    catalogue: CrsCatalogue, extent: tuple[float, float, float, float]
) -> None:
    """They would be written unchanged, far outside the Earth."""
    with pytest.raises(Rejection, match="not degrees"):
        planned(catalogue, "GeoPackage", layer(extent=extent))
    assert planned(catalogue, "GeoPackage", layer(extent=extent), source_epsg=3857).source_epsg == 3857


def test_several_layers_into_one_are_listed(catalogue: CrsCatalogue) -> None:
    """Except empty and derived ones."""
    layers = (layer("a"), layer("b", {"Polygon": 3}), layer("c", {}, features=0), layer("d", is_derived=True))
    with pytest.raises(MultipleLayers) as caught:
        planned(catalogue, "GeoJson", *layers, of=source("gpkg"))
    assert [(found.layer, found.features) for found in caught.value.layers] == [("a", 2), ("b", 3)]
    assert {
        dataset.name for dataset in planned(catalogue, "Gpx", layer("a"), layer("x", is_derived=True)).datasets
    } == {"data"}


def test_a_file_without_layers_may_be_damaged(catalogue: CrsCatalogue) -> None:
    """The driver of FlatGeobuf finds none where it cannot read the header, and says no more."""
    with pytest.raises(Rejection, match="it is empty or damaged, or arranged in an unusual way"):
        planned(catalogue, "Csv", of=source("flatgeobuf"))


def test_names_of_layers_become_safe_and_unique(catalogue: CrsCatalogue) -> None:
    """No part of them is a path, and a warning reports every change."""
    plan = planned(catalogue, "Shapefile", layer("../a b"), layer("a/b"), layer("A_B"), of=source("gpkg"))
    assert [dataset.name for dataset in plan.datasets] == ["a_b", "a_b_2", "A_B_3"]
    assert any("'../a b' to 'a_b'" in warning for warning in plan.warnings)


def test_a_record_too_wide_for_a_dbf_is_refused(catalogue: CrsCatalogue) -> None:
    """The driver would write a broken file."""
    fields = tuple(Field(f"f{number}", FieldType.TEXT, 254) for number in range(300))
    with pytest.raises(Rejection, match="wider together"):
        planned(catalogue, "Shapefile", layer(fields=fields))


@pytest.mark.parametrize(("target", "most"), [("Shapefile", 255), ("MapInfo", 250), ("Ods", 1024)])
def test_columns_that_other_programs_do_not_read_are_told(catalogue: CrsCatalogue, target: str, most: int) -> None:
    """The result has them all."""
    fields = tuple(Field(f"f{number}", FieldType.INTEGER, 1) for number in range(most + 1))
    told = f"Many programs read only the first {most:,} columns"
    for count in (most, most + 1):
        warnings = planned(catalogue, target, layer(fields=fields[:count])).warnings
        assert any(told in warning for warning in warnings) == (count > most)


def test_more_rows_than_a_sheet_holds_are_refused(catalogue: CrsCatalogue) -> None:
    """Spreadsheet programs would drop them silently."""
    with pytest.raises(Rejection, match="1,048,575 rows"):
        planned(catalogue, "Xlsx", layer(types={"Point": 1_048_576}))


@pytest.mark.parametrize("output", ["Csv", "Ods", "Xlsx"])
def test_a_table_of_cells_without_any_is_refused(catalogue: CrsCatalogue, output: str) -> None:
    """Its rows would be blank, or none could be read back."""
    with pytest.raises(Rejection, match="neither columns nor positions"):
        planned(catalogue, output, layer(types={}, features=2))
    assert planned(catalogue, output, layer(types={}, features=2), layer("b", fields=(Field("a"),))).datasets
    assert planned(catalogue, output, layer(types={}, features=0)).datasets


@pytest.mark.parametrize(
    ("output", "features", "is_told"), [("GeoJson", 1, True), ("GeoJson", 0, False), ("Ods", 1, False)]
)
def test_a_table_without_places_is_told_where_they_would_be(output: str, features: int, *, is_told: bool) -> None:
    """Not of a table that stays one, or is empty."""
    facts = Facts(layers=(Layer(name="a", features=features),), is_unplaced=True, warnings=("other",))
    told = told_of_reading(find_output(output), facts)
    assert told == (("other", UNPLACED) if is_told else ("other",))


def test_the_direct_way_is_for_plain_geojson(catalogue: CrsCatalogue) -> None:
    """Not if names change, families are split or the geometry column is visible."""
    scanned = Facts(layers=(layer(fields=(Field("name"),)),))
    assert can_go_direct(source(), find_output("Shapefile"), scanned)
    assert plan_conversion(source(), find_output("Shapefile"), scanned, ConversionRequest(), catalogue).direct
    long_names = Facts(layers=(layer(fields=(Field("population_2020"),)),))
    mixed = Facts(layers=(layer(types={"Point": 1, "Polygon": 1}),))
    same = Facts(layers=(layer(fields=(Field("a"), Field("A"))),))
    for facts in (long_names, mixed, same):
        assert not can_go_direct(source(), find_output("Shapefile"), facts)
    parts = Facts(layers=(layer(types={"MultiPolygon": 1}),))
    assert not can_go_direct(source(), find_output("Kml"), parts)
    assert not can_go_direct(source(), find_output("GeoJsonSeq"), parts)
    assert can_go_direct(source(), find_output("GeoPackage"), parts)
    assert not can_go_direct(source("kml"), find_output("Shapefile"), scanned)
    assert not can_go_direct(source(), find_output("Gml"), scanned)


@pytest.mark.parametrize(
    ("types", "dominant"),
    [
        ({"Point": 2, "Polygon": 5}, "Polygon"),
        ({"Polygon": 2, "MultiPolygon": 2}, "Polygon"),
        ({}, "None"),
        ({"GeometryCollection": 1}, "GeometryCollection"),
    ],
)
def test_the_dominant_type(types: dict[str, int], dominant: str) -> None:
    """The most frequent one, over all layers; None for a table."""
    assert Facts(layers=(layer(types=types), layer("b", types))).geometry_type == dominant


def test_more_layers_than_can_be_written_one_by_one_are_refused(catalogue: CrsCatalogue) -> None:
    """With a remedy; a single run for all of them has no such limit."""
    many = Facts(layers=tuple(layer(f"l{number}") for number in range(MAX_DATASETS + 1)))
    with pytest.raises(
        Rejection, match=r"holds more than 300 layers; at most 300 are written as GeoPackage\. Name one"
    ):
        plan_conversion(source("gml"), find_output("GeoPackage"), many, ConversionRequest(), catalogue)
    assert len(plan_conversion(source("gml"), find_output("Kml"), many, ConversionRequest(), catalogue).datasets) == 301
    one = ConversionRequest(layer="l7")
    assert len(plan_conversion(source("gml"), find_output("GeoPackage"), many, one, catalogue).datasets) == 1


def test_coordinates_without_an_axis_of_their_system_are_refused_where_none_could_read_them(
    catalogue: CrsCatalogue,
) -> None:
    """Programs expect three numbers a point there; other targets store how many there are."""
    with pytest.raises(Rejection, match=r"EPSG:4979 has a third axis.* such as 4326"):
        planned(catalogue, "Gml", layer(), target_epsg=4979)
    with pytest.raises(Rejection, match="EPSG:4979 has a third axis"):
        planned(catalogue, "Gml", layer(has_z=True, flat_geometries=1), target_epsg=4979)
    assert planned(catalogue, "Gml", layer(has_z=True), target_epsg=4979).output_epsg == 4979
    assert planned(catalogue, "GeoPackage", layer(), target_epsg=4979).output_epsg == 4979


@pytest.mark.parametrize(
    ("facts", "is_in_place"),
    [
        ({}, True),
        ({"types": {"Point": 1, "MultiPoint": 1}, "null_geometries": 1}, True),
        ({"types": {"Point": 1, "LineString": 1}}, False),
        ({"has_z": True}, False),
        ({"has_m": True}, False),
        ({"crs": Crs(known=True, epsg=3857)}, False),
        ({"extent": (-180.1, 0, 0, 0)}, False),
        ({"extent": (0, 0, 0, 90.0005)}, False),
        ({"extent": None}, False),
    ],
)
def test_only_flat_points_on_the_map_are_in_place(
    catalogue: CrsCatalogue, facts: dict[str, Any], *, is_in_place: bool
) -> None:
    """All others the driver may have to move, cut or turn."""
    places = layer(**{"extent": (-180, -90, 180, 90), **facts})
    assert planned(catalogue, "GeoJson", places, of=source("gpkg")).is_in_place is is_in_place


def test_a_layer_whose_system_is_named_is_in_place_in_that_system_only(catalogue: CrsCatalogue) -> None:
    """`sourceEpsg` decides, not what the file records."""
    table = layer(crs=Crs(), extent=(0, 0, 1, 1))
    assert planned(catalogue, "GeoJson", table, of=source("csv"), source_epsg=4326).is_in_place
    assert not planned(catalogue, "GeoJson", layer(extent=(0, 0, 1, 1)), of=source("csv"), source_epsg=3857).is_in_place
