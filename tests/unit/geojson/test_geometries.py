"""Findings about geometries."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.formats.facts import Flaw, Occurrence
from service.geojson.findings import Scan
from service.geojson.scan import scan_bytes
from service.geojson.warnings import reading_warnings
from tests.support.geojson import LINE, POINT, POLYGON, collection, feature, flaw, gathered, geometry

RING = [[0, 0], [0, 1], [1, 1], [0, 0]]
WHOLE: dict[str, Any] = {
    "Point": [1, 2],
    "MultiPoint": [[1, 2], [3, 4]],
    "LineString": [[1, 2], [3, 4]],
    "MultiLineString": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]],
    "Polygon": [RING, RING],
    "MultiPolygon": [[RING, RING], [RING]],
}


positions = st.tuples(st.floats(-400, 400), st.floats(-99, 99))


def found(*geometries: Any) -> Scan:
    """The findings about features with these geometries."""
    return scan_bytes(collection(*(feature(None, shape) for shape in geometries)), seeks_edges=True)


def raised(coordinates: Any) -> Any:
    """Coordinates with a third number in each position."""
    if isinstance(coordinates[0], int):
        return [*coordinates, 9.5]
    return [raised(inner) for inner in coordinates]


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("count", [1, 3])
def test_whole_geometries_are_counted_by_type(kind: str, count: int) -> None:
    """In two dimensions, in three, and in both."""
    flat, high = geometry(kind, WHOLE[kind]), geometry(kind, raised(WHOLE[kind]))
    for shapes, with_z in (([flat] * count, 0), ([high] * count, count), ([flat, high] * count, count)):
        scan = found(*shapes)
        assert scan.geometry_types == {kind: len(shapes)}
        assert scan.types_with_z == ({kind: with_z} if with_z else {})
        assert (scan.flaws, scan.empty_geometries) == ({}, 0)


@pytest.mark.parametrize(
    ("kind", "coordinates"),
    [
        ("Point", []),
        ("Point", [1]),
        ("Point", ["1", "2"]),
        ("Point", [None, 1]),
        ("Point", [1, 2, None]),
        ("Point", [True, 1]),
        ("Point", [[1, 2]]),
        ("Point", [1, [2, 3]]),
        ("Point", {}),
        ("Point", None),
        ("Point", 5),
        ("LineString", [1, 2]),
        ("LineString", [[1, 2], [3]]),
        ("LineString", [[1, [2, 3], 4]]),
        ("LineString", [[1, 2], None]),
        ("LineString", [[1, 2], [[3, 4]]]),
        ("MultiPoint", [[1, 2], []]),
        ("Polygon", []),
        ("Polygon", RING),
        ("Polygon", [5]),
        ("Polygon", [[[0, 0], ["x", 1]]]),
        ("MultiLineString", {}),
        ("MultiPolygon", "x"),
        ("Circle", [1, 2]),
        (None, [1, 2]),
        (7, [1, 2]),
    ],
)
def test_what_is_no_geometry_is_unreadable(kind: Any, coordinates: Any) -> None:
    """It is lost, alone or among others, and does not affect them."""
    bad = geometry(kind, coordinates)
    assert flaw(found(bad), Flaw.UNREADABLE).count == 1
    among = found(POINT, LINE, bad, POLYGON, POINT)
    assert flaw(among, Flaw.UNREADABLE).count == 1
    assert among.geometry_types == {"Point": 2, "LineString": 1, "Polygon": 1}


@pytest.mark.parametrize("bad", [5, "x", [], {}, True, {"type": "Point"}, {"coordinates": [1, 2]}])
def test_a_geometry_that_is_none_is_unreadable(bad: Any) -> None:
    """Only null means that there is no geometry."""
    assert (flaw(found(bad), Flaw.UNREADABLE).count, found(bad).null_geometries) == (1, 0)
    assert (found(None).flaws, found(None).null_geometries) == ({}, 1)


@pytest.mark.parametrize(
    "shape",
    [
        geometry("LineString", []),
        geometry("MultiPoint", []),
        geometry("Polygon", [[]]),
        geometry("MultiLineString", [[]]),
        geometry("MultiPolygon", []),
        geometry("MultiPolygon", [[]]),
        gathered(),
        gathered(gathered(), geometry("LineString", [])),
    ],
)
def test_an_empty_geometry_is_no_loss(shape: Any) -> None:
    """It counts as empty, and not under its type."""
    scan = found(shape, POINT)
    assert (scan.empty_geometries, scan.geometry_types) == (1, {"Point": 1})
    assert not {Flaw.UNREADABLE, Flaw.DAMAGED} & scan.flaws.keys()


@pytest.mark.parametrize(
    "shape",
    [
        geometry("Polygon", [RING, [["x", 1]]]),
        geometry("MultiLineString", [[[1, 2], [3, 4]], [[None]]]),
        geometry("MultiPolygon", [[RING], [[[5]]]]),
        gathered(POINT, geometry("Circle", [1])),
        gathered(POINT, gathered(geometry("Point", [1]))),
    ],
)
def test_a_geometry_of_which_a_part_is_lost_is_damaged(shape: Any) -> None:
    """The rest of it is converted."""
    scan = found(shape)
    assert (flaw(scan, Flaw.DAMAGED).count, flaw(scan, Flaw.UNREADABLE).count) == (1, 0)
    assert scan.geometry_types == {shape["type"]: 1}


@pytest.mark.parametrize(
    "shape",
    [
        geometry("MultiLineString", [[], [[1, 2], [3, 4]]]),
        geometry("MultiPolygon", [[], [RING]]),
        geometry("MultiPolygon", [[[]], [RING]]),
        gathered(POINT, geometry("LineString", [])),
        gathered(gathered(POINT, gathered())),
    ],
)
def test_geometries_with_parts_of_nothing_are_counted(shape: Any) -> None:
    """But not those of nothing else, nor empty rings of polygons."""
    scan = found(POINT, geometry("MultiLineString", [[]]), shape, geometry("Polygon", [RING, []]), shape)
    assert (flaw(scan, Flaw.HOLLOW), scan.empty_geometries) == (Occurrence(2, 3), 1)
    (told,) = reading_warnings(scan)
    assert told.endswith("left out of the geometry of 2 features. The first is feature 3.")
    assert reading_warnings(scan, into_json=True) == []


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "1E+400"])
def test_numbers_that_may_be_infinite_or_none_are_noticed(number: str) -> None:
    """Also in collections; the converter looks at them then."""
    shapes = (
        geometry("Point", [1, 7]),
        geometry("LineString", [[1, 7], [3, 1e-7]]),
        gathered(geometry("Point", [1, 7])),
    )
    for shape in shapes:
        document = collection(feature(None, shape))
        assert not scan_bytes(document).may_be_infinite
        assert scan_bytes(document.replace(b"7]", number.encode() + b"]", 1)).may_be_infinite


@pytest.mark.parametrize("blank", [b"", b"\n "])
def test_rings_that_may_not_end_where_they_begin_are_noticed(blank: bytes) -> None:
    """The converter looks at them then."""
    for shape in (geometry("Polygon", [RING, RING]), geometry("MultiPolygon", [[RING], [RING, RING]])):
        document = collection(feature(None, shape), feature(None, geometry("MultiLineString", [[[1, 2], [3, 4]]])))
        spread = document.replace(b"[", b"[" + blank).replace(b"]", blank + b"]")
        assert not scan_bytes(spread).may_be_faulty
        first, last, rest = spread.rpartition(b"[" + blank + b"0,")
        assert scan_bytes(first + last.replace(b"0,", b"9,") + rest).may_be_faulty


@pytest.mark.parametrize("blank", [b"", b"\n "])
@pytest.mark.parametrize(("kind", "levels"), [("LineString", 0), ("MultiLineString", 1), ("Polygon", 1)])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_lines_of_a_single_position_are_noticed(blank: bytes, kind: str, levels: int, place: int) -> None:
    """Wherever they are; the converter looks at them then."""

    def is_noticed(lines: Sequence[Any]) -> bool:
        shapes = [geometry(kind, line if levels == 0 else [line]) for line in lines]
        if kind == "MultiLineString":
            shapes.append(geometry(kind, lines))
        document = collection(
            feature(None, geometry("MultiPoint", [[1, 2]])), *(feature(None, each) for each in shapes)
        )
        return scan_bytes(document.replace(b"[", b"[" + blank).replace(b"]", blank + b"]")).may_be_faulty

    assert not is_noticed([RING] * 3)
    assert is_noticed([[[1, 2]] if number == place else RING for number in range(3)])


HALF_RAISED = [[1, 2, 3], [4, 5]]


@pytest.mark.parametrize(
    "shape",
    [
        geometry("LineString", HALF_RAISED),
        geometry("MultiPoint", HALF_RAISED),
        geometry("Polygon", [RING, raised(RING)]),
        geometry("MultiPolygon", [[RING], [raised(RING)]]),
        gathered(POINT, geometry("Point", [1, 2, 3])),
    ],
)
def test_elevations_in_some_positions_of_a_geometry_are_counted(shape: Any) -> None:
    """But not features with and without elevations, each of which stays as it is."""
    scan = found(POINT, shape, shape, POINT, geometry("Point", [1, 2, 3]))
    assert flaw(scan, Flaw.HALF_RAISED) == Occurrence(2, 2)
    assert not found(POINT, geometry("Point", [1, 2, 3]), geometry("LineString", [])).flaws


@pytest.mark.parametrize(
    "shape",
    [
        geometry("Point", [1, 2, 3, 4]),
        geometry("LineString", [[1, 2, 3], [4, 5, 6, 7, 8]]),
        gathered(POINT, geometry("Polygon", [RING, [[1, 2, 3, 4]] * 4])),
    ],
)
def test_positions_of_more_than_three_numbers_are_counted(shape: Any) -> None:
    """Whichever of them are longer."""
    scan = found(POINT, None, shape, POINT, shape)
    assert flaw(scan, Flaw.LONGER) == Occurrence(2, 3)
    assert not found(POINT, geometry("Point", [1, 2, 3])).flaws


def test_the_first_geometries_with_unreadable_coordinates_are_found() -> None:
    """Those that are lost, and those of which some parts are, each on its own."""
    lost, damaged = geometry("Point", ["1", "2"]), geometry("MultiLineString", [[[0, 0], [1, 1]], [["x", 1]]])
    scan = found(POINT, None, damaged, lost, lost, damaged)
    assert (flaw(scan, Flaw.UNREADABLE).first, flaw(scan, Flaw.DAMAGED).first) == (4, 3)
    assert not found(POINT, None).flaws


def test_four_numbers_are_three() -> None:
    """The converter drops the measure."""
    scan = found(geometry("LineString", [[1, 2, 3, 4], [5, 6, 7, 8]]))
    assert scan.types_with_z == {"LineString": 1}


def test_letters_of_a_type_may_be_large_or_small() -> None:
    """As in the converter."""
    assert found(geometry("POINT", [1, 2]), geometry("point", [1, 2])).geometry_types == {"Point": 2}


def test_what_is_in_collections_is_counted() -> None:
    """Nested collections are flattened."""
    scan = found(gathered(POINT, gathered(LINE, raised_point := geometry("Point", [1, 2, 3])), None), raised_point)
    assert scan.geometry_types == {"GeometryCollection": 1, "Point": 1}
    assert scan.parts == {"Point": 2, "LineString": 1}
    assert scan.types_with_z == {"GeometryCollection": 1, "Point": 1}


def test_the_first_feature_of_each_type_is_told() -> None:
    """Counted from one, including features without geometry."""
    scan = found(None, POINT, POINT, LINE, gathered(POLYGON), LINE)
    assert scan.first == {"Point": 2, "LineString": 4, "GeometryCollection": 5}


@pytest.mark.parametrize(
    ("shape", "exceeds"),
    [
        (geometry("Point", [179.99, -89.99]), False),
        (geometry("Point", [-190, 0]), False),
        (geometry("Point", [412345.6, 5712345.6]), True),
        (geometry("Point", [-412345.6, 1.0]), True),
        (geometry("Point", [5.5, 5712345.6]), True),
        (geometry("Point", [5.5, -123.4]), True),
        (geometry("Point", [5.5, 50.5, 4810.0]), False),
        (geometry("Point", [412345.6, 5712345.6, 12.0]), True),
        (geometry("LineString", [[1.12345678, 2.12345678], [3, 1234]]), True),
        (geometry("LineString", [[1, 2], [3, 4, 5000]]), False),
        (POLYGON, False),
    ],
)
def test_numbers_too_large_for_degrees_are_seen(shape: Any, exceeds: bool) -> None:
    """Alone or among others; elevations are ignored."""
    assert found(shape).exceeds_degrees == exceeds
    assert found(POINT, LINE, POLYGON, shape, POINT, LINE, POLYGON).exceeds_degrees == exceeds


@pytest.mark.parametrize(
    ("shape", "near"),
    [
        (geometry("Point", [179.99, 84.99]), False),
        (geometry("Point", [-90.5, 0]), False),
        (geometry("LineString", [[85, 8.5], [99.9, -9.9]]), False),
        (geometry("LineString", [[170, 0], [190, 1]]), True),
        (geometry("Point", [-180, 0]), True),
        (geometry("Point", [359.5, 0]), True),
        (geometry("Polygon", [[[0, 0], [0, -85.1], [1, 0], [0, 0]]]), True),
        (geometry("MultiPoint", [[1, 2], [3, 90]]), True),
        (gathered(geometry("Point", [190, 0])), True),
    ],
)
def test_positions_at_the_edges_of_maps_are_seen(shape: Any, near: bool) -> None:
    """Alone or among others."""
    assert found(shape).near_edges == near
    assert found(POINT, LINE, POLYGON, shape, POINT, LINE, POLYGON).near_edges == near


@given(st.lists(positions, min_size=1, max_size=4), st.sampled_from(["f", "e"]))
def test_no_position_at_the_edges_is_missed(places: list[tuple[float, float]], notation: str) -> None:
    """In any notation of its numbers."""
    texts = [f"[{longitude:{notation}} ,\n {latitude:{notation}}]" for longitude, latitude in places]
    shape = f'{{"type": "MultiPoint", "coordinates": [{", ".join(texts)}]}}'
    one = f'{{"type": "Feature", "properties": {{}}, "geometry": {shape}}}'
    scan = scan_bytes(f'{{"type": "FeatureCollection", "features": [{one}, {one}]}}'.encode(), seeks_edges=True)
    assert scan.near_edges or all(abs(x) < 180 and abs(y) < 85 for x, y in places)


def test_numbers_that_are_too_large_for_degrees_are_noticed() -> None:
    """Whether they are right depends on the system."""
    far = feature(None, geometry("Point", [412345.6, 5712345.6]))
    assert scan_bytes(collection(far)).exceeds_degrees
    assert not scan_bytes(collection(feature())).exceeds_degrees


nests = st.recursive(
    st.one_of(st.integers(0, 9), st.floats(-9, 9), st.none(), st.text("[],", max_size=3)),
    lambda inner: st.lists(inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(sorted(WHOLE)), nests)
def test_looking_at_many_or_at_one_finds_the_same(kind: str, coordinates: Any) -> None:
    """For any coordinates, the fast search for brackets and commas agrees with the careful one."""
    shape = geometry(kind, coordinates)
    alone, inside = found(shape), found(gathered(shape))
    lost = max(flaw(alone, kind).count for kind in (Flaw.UNREADABLE, Flaw.DAMAGED))
    assert lost == flaw(inside, Flaw.DAMAGED).count
    assert alone.geometry_types.get(kind, 0) == inside.parts.get(kind, 0)
    assert alone.types_with_z.get(kind, 0) == inside.types_with_z.get("GeometryCollection", 0)
